"""Here every rank sends the tensor twice. It sends a little less: 2(n − 1) chunks of nbytes / n
bytes each. There are n chunks, one for each rank, not n − 1.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# or: WAY = "n - 1 chunks"
# or: WAY = "twice, but asks for one rank"

WAY = "twice"


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    if WAY == "n - 1 chunks":
        return 2 * (n - 1) * (alpha + nbytes / (n - 1) * beta)
    if WAY == "twice, but asks for one rank" and n == 1:
        return 0.0
    return 2 * (n - 1) * alpha + 2 * nbytes * beta
