# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: counted once for each phase
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (alpha + (n - 1) / n * nbytes * beta)
