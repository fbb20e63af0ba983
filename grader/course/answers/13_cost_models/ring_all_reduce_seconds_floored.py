# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: // n is 0 for every n
# The share is cut to a whole number, which is 0.
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * ((n - 1) // n) * (n * alpha + nbytes * beta)
