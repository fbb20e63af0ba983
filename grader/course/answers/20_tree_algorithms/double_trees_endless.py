# exercise: double_trees
# diagnosis: timeout
# hint: what is to end it


def double_trees(n):
    """Halves until one is left; of an odd number it never is."""
    one = [None] * n
    for r in range(1, n):
        above = r
        while above >= r:
            above = r % (above + r) if n % 2 else (r - 1) // 2
        one[r] = above
    return one, [None if p is None else n - 1 - p for p in reversed(one)]
