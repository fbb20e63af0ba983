"""That is the cost of the bytes alone. Each of the 2(n − 1) messages costs alpha, too."""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) / n * nbytes * beta
