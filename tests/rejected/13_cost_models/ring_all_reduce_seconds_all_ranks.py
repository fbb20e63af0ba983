# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: the sum over all ranks
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return n * 2 * (n - 1) * (alpha + nbytes / n * beta)
