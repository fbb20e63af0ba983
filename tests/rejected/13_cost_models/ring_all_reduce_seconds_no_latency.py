# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: cost of the bytes alone
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) / n * nbytes * beta
