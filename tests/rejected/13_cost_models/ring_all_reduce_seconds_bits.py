# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: there are no bits
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + 8 * nbytes / n * beta)
