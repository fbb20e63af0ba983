# exercise: double_trees
# diagnosis: wrong_value
# hint: Return two lists


def double_trees(n):
    return [None] + [(r - 1) // 2 for r in range(1, n)]
