# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: as if it were bytes per second
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes / n / beta)
