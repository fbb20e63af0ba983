"""That is 10⁶ times as much: in microseconds. Seconds are asked for."""
# exercise: ring_all_reduce_seconds, tree_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 1e6 * 2 * (n - 1) * (alpha + nbytes / n * beta)


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 1e6 * 2 * (n - 1).bit_length() * (alpha + nbytes * beta)
