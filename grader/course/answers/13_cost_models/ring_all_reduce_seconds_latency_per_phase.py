"""The latency is counted once for each phase. The steps of a phase come one after the other, and
each of them costs alpha.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# or: ASKS_FIRST = True

ASKS_FIRST = False


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    if ASKS_FIRST and n == 1:
        return 0.0
    return 2 * (alpha + (n - 1) / n * nbytes * beta)
