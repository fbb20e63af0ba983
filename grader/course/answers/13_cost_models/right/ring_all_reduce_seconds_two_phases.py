# exercise: ring_all_reduce_seconds
# diagnosis: none
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    chunk = nbytes / n
    reduce_scatter = (n - 1) * (alpha + beta * chunk)
    all_gather = (n - 1) * (alpha + beta * chunk)
    return reduce_scatter + all_gather
