# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: That is one phase
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return (n - 1) * (alpha + nbytes / n * beta)
