"""The chunk is rounded up to whole bytes. The model does not round: nbytes / n."""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + math.ceil(nbytes / n) * beta)
