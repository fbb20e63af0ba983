"""You count 2n steps. A chunk that has visited n ranks has made n − 1 steps, so there are 2(n −
1), and none when a rank is alone.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# or: ASKS_FIRST = True

ASKS_FIRST = False


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    if ASKS_FIRST and n == 1:
        return 0.0
    return 2 * n * (alpha + nbytes / n * beta)
