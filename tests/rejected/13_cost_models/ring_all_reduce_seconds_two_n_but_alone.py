# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: You count 2n steps
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    if n == 1:
        return 0.0
    return 2 * n * (alpha + nbytes / n * beta)
