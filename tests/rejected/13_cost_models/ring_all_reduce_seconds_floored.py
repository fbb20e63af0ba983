# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: Take 2 ranks
# not: group of one
# The share is cut to a whole number, which is 0.
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * ((n - 1) // n) * (n * alpha + nbytes * beta)
