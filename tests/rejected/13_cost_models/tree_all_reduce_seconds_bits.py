# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: there are no bits
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * (alpha + 8 * nbytes * beta)
