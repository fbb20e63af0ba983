# exercise: double_trees
# diagnosis: exception
# hint: go through


def double_trees(n):
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    two = [None] * n
    for r in range(n):
        two[n - r] = None if one[r] is None else n - one[r]
    return one, two
