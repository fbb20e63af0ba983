"""The chunk is rounded to whole bytes. The model does not round: nbytes / n, not nbytes // n."""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes // n * beta)
