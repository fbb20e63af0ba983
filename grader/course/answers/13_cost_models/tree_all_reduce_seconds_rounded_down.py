"""log₂ n is rounded down. Two rounds reach 4 ranks, and the fifth takes one more: round up."""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = n.bit_length() - 1
    return 2 * levels * (alpha + nbytes * beta)
