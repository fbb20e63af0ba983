# exercise: double_trees
# diagnosis: none


def double_trees(n):
    """Binary trees in order: of each, only every second rank has children."""
    parent = [None] * n

    def build(low, high, above):
        """Hang the ranks low … high - 1 below a rank; every inner rank is odd."""
        if low >= high:
            return
        size = high - low
        top = 1 << (size.bit_length() - 1)
        root = low + top - 1
        if size > 1 and root % 2 == 0:
            root -= 1
        parent[root] = above
        build(low, root, root)
        build(root + 1, high, root)

    build(0, n, None)
    if n % 2 == 0:
        other = [None if p is None else n - 1 - p for p in reversed(parent)]
    else:  # moved on by one: the inner ranks are even there
        other = [None] * n
        for r, p in enumerate(parent):
            other[(r + 1) % n] = None if p is None else (p + 1) % n
    return parent, other
