# exercise: double_trees
# diagnosis: none


def double_trees(n):
    """The ranks below n // 2 pass on in one tree, the last n // 2 in the other."""
    first, second = [None] * n, [None] * n
    for r in range(1, n):
        first[r] = (r + 1) // 2 - 1
        second[n - 1 - r] = n - (r + 1) // 2
    return first, second
