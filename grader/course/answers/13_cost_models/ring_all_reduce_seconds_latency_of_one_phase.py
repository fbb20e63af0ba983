"""The latency of one phase is missing. Both phases have n − 1 steps, and every step costs alpha.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return (n - 1) * alpha + 2 * (n - 1) / n * nbytes * beta
