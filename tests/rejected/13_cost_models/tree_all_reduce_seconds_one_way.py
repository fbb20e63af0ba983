# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: That is one way only
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return (n - 1).bit_length() * (alpha + nbytes * beta)
