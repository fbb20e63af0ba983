"""The bytes of one phase are missing. Both phases have n − 1 steps, and in every step a chunk of
nbytes / n bytes travels.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * alpha + (n - 1) / n * nbytes * beta
