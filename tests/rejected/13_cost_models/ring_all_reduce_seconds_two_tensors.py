# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: a little less
# not: twice as much
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * alpha + 2 * nbytes * beta
