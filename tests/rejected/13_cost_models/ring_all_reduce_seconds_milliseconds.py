# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: in milliseconds
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2000 * (n - 1) * (alpha + nbytes / n * beta)
