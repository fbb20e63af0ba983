"""The bytes of one phase are missing. Both phases have n − 1 steps, and in every step a chunk of
nbytes / n bytes travels.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# or: WAY = "the tensor once"
# or: WAY = "the tensor once, but asks for one rank"

WAY = "one phase"


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    if WAY == "the tensor once, but asks for one rank" and n == 1:
        return 0.0
    chunks = n - 1 if WAY == "one phase" else n
    return 2 * (n - 1) * alpha + chunks / n * nbytes * beta
