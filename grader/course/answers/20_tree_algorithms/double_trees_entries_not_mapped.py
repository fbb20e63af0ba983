"""The list is reversed, and the parents in it are not. If what is said of rank r is to hold of
rank n − 1 − r, parent p has to become n − 1 − p."""
# exercise: double_trees
# diagnosis: wrong_value


def double_trees(n):
    one = [None] + [(r - 1) // 2 for r in range(1, n)]
    return one, one[::-1]
