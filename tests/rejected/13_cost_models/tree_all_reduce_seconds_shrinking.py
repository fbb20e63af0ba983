# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: another, better algorithm
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = (n - 1).bit_length()
    return 2 * levels * alpha + 2 * (n - 1) / n * nbytes * beta
