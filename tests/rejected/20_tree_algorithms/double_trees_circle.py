# exercise: double_trees
# diagnosis: wrong_value
# hint: round in a cycle


def double_trees(n):
    """The parents are turned round, and the children are not."""
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    two = [None] + [n - 1 - parent for parent in one[1:]]
    return one, two
