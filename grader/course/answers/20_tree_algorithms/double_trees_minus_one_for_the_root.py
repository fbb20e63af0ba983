# exercise: double_trees
# diagnosis: wrong_value
# hint: None for the root


def double_trees(n):
    one = [-1] + [(r - 1) // 2 for r in range(1, n)]
    return one, [n - 1 - p if p >= 0 else -1 for p in reversed(one)]
