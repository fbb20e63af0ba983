"""Every step sends the whole tensor here. On the ring a step sends one chunk, nbytes / n bytes."""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes * beta)
