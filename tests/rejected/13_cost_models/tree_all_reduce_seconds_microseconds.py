# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: in microseconds
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2e6 * (n - 1).bit_length() * (alpha + nbytes * beta)
