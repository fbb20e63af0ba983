# exercise: double_trees
# diagnosis: wrong_value
# hint: one root


def double_trees(n):
    one = [max(0, (r - 1) // 2) for r in range(n)]
    return one, [n - 1 - p for p in reversed(one)]
