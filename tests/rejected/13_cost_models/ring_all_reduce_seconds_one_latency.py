# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: counted only once
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return alpha + 2 * (n - 1) / n * nbytes * beta
