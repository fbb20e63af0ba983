# exercise: ring_all_reduce_seconds
# diagnosis: none
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    latency = 2 * (n - 1) * alpha
    bandwidth = 2 * (n - 1) / n * nbytes * beta
    return latency + bandwidth
