# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: one for each rank, not n − 1
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes / (n - 1) * beta)
