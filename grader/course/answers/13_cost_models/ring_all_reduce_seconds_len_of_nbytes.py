# exercise: ring_all_reduce_seconds
# diagnosis: exception
# hint: -
# not: n may be 1 | divide by
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + len(nbytes) / n * beta)
