# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: one rank after another
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes * beta)
