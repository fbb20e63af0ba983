# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: sends the whole tensor here
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes * beta)
