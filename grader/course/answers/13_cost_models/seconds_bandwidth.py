"""You divide by beta, as if it were bytes per second. It is seconds per byte: multiply."""
# exercise: ring_all_reduce_seconds, tree_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes / n / beta)


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * (alpha + nbytes / beta)
