# exercise: double_trees
# diagnosis: wrong_value
# hint: more than two children


def double_trees(n):
    """Parent: the lowest bit cleared."""
    one = [None] + [r & (r - 1) for r in range(1, n)]
    return one, [None if p is None else n - 1 - p for p in reversed(one)]
