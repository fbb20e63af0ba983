"""It is right where n is even, and where n is odd a rank has children in both trees. The second
tree is the first with every rank moved on by one, so the last rank becomes rank 0: it has children
in one tree, and rank 0 in the other."""
# exercise: double_trees
# diagnosis: wrong_value
# earns: 0.5


def double_trees(n):
    """As in NCCL: odd ranks are leaves; mirrored for even n, moved on by one for odd n."""
    parent = [None] * n
    for r in range(1, n):
        bit = r & -r
        up = (r ^ bit) | (bit << 1)
        parent[r] = up if up < n else r ^ bit
    if n % 2 == 0:
        return parent, [None if p is None else n - 1 - p for p in reversed(parent)]
    other = [None] * n
    for r, p in enumerate(parent):
        other[(r + 1) % n] = None if p is None else (p + 1) % n
    return parent, other
