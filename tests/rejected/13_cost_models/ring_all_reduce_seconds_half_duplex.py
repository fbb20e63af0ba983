# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: That is twice as much
# not: sends the tensor twice
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    step = 2 * (alpha + nbytes / n * beta)  # send, then receive
    return 2 * (n - 1) * step
