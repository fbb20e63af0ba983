# exercise: double_trees
# diagnosis: wrong_value
# hint: some ranks have children in both
# earns: 0.5


def double_trees(n):
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    return one, list(one)
