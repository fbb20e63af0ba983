"""Each message of the tree is the whole tensor. Only the ring cuts it into n chunks."""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * (alpha + nbytes / n * beta)
