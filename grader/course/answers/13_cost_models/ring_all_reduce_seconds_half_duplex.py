"""That is twice as much. There are two phases of n − 1 steps, and a step costs one message: a rank
sends and receives at the same time.
"""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# not: sends the tensor twice


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    step = 2 * (alpha + nbytes / n * beta)  # send, then receive
    return 2 * (n - 1) * step
