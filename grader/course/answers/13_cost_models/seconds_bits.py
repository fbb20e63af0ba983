"""You multiply by 8. beta is in seconds per byte, and nbytes are bytes: there are no bits here."""
# exercise: ring_all_reduce_seconds, tree_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + 8 * nbytes / n * beta)


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * (alpha + 8 * nbytes * beta)
