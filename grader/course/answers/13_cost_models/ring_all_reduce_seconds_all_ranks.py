"""That is the sum over all ranks. They work at the same time: their seconds do not add up."""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return n * 2 * (n - 1) * (alpha + nbytes / n * beta)
