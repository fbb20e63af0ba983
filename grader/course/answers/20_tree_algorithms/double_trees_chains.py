# exercise: double_trees
# diagnosis: wrong_value
# hint: too deep


def double_trees(n):
    """One chain up, one chain down."""
    return [None, *range(n - 1)], [*range(1, n), None]
