# exercise: ring_all_reduce_seconds
# diagnosis: none
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes / n * beta)
