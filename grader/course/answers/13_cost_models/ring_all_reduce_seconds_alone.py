# exercise: ring_all_reduce_seconds
# diagnosis: exception
# hint: n is the only thing
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    steps = 2 * (n - 1)
    per_step = (steps * alpha + steps / n * nbytes * beta) / steps
    return steps * per_step
