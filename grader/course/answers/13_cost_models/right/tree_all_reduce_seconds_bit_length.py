# exercise: tree_all_reduce_seconds
# diagnosis: none
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * (alpha + nbytes * beta)
