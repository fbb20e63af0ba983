"""That is the latency alone. Each message also takes beta seconds for each of its bytes."""
# exercise: ring_all_reduce_seconds, tree_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * alpha


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * alpha
