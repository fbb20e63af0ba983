"""It is right where n is even, and where n is odd ranks have children in both trees. A mirror image
makes n − 1 − r of rank r: with n odd, odd ranks stay odd and even ones even. Moving every rank on by
one, modulo n, makes even ones of the odd."""
# exercise: double_trees
# diagnosis: wrong_value
# earns: 0.5
# or: ROOT = "rank 0"

ROOT = "in the middle"


def in_order(n):
    """Every second rank is a leaf: the odd ones below rank 0, or else the even ones."""
    first = 0 if ROOT == "rank 0" else 1
    tree = []
    for r in range(first, n + first):
        bit = r & -r
        up = (r - bit) | 2 * bit
        parent = up if up < n + first else r - bit
        tree.append(parent - first if r and (parent or ROOT == "rank 0") else None)
    return tree


def double_trees(n):
    tree = in_order(n)
    return tree, [None if p is None else n - 1 - p for p in tree[::-1]]
