# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: is the whole tensor
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * (alpha + nbytes / n * beta)
