"""The latency is divided by n, as the bytes are. Each of the 2(n − 1) messages costs a whole alpha,
however small its part of the tensor is."""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) / n * (alpha + nbytes * beta)
