"""That is one phase. The reduce-scatter takes n − 1 steps, and the all-gather as many again."""
# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return (n - 1) * (alpha + nbytes / n * beta)
