"""The latency is counted only once. The steps come one after the other, and each of the 2(n − 1)
costs alpha.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# or: ASKS_FIRST = True

ASKS_FIRST = False


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    if ASKS_FIRST and n == 1:
        return 0.0
    return alpha + 2 * (n - 1) / n * nbytes * beta
