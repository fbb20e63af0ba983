"""The parents are turned round, and the children are not. If what is said of rank r is to hold of
rank n − 1 − r, its parent has to stand at that place: reverse the list as well."""
# exercise: double_trees
# diagnosis: wrong_value


def double_trees(n):
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    return one, [None] + [n - 1 - parent for parent in one[1:]]
