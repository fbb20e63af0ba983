# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: One round too many
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * n.bit_length() * (alpha + nbytes * beta)
