# exercise: ring_all_reduce_seconds
# diagnosis: none
# For one rank it is the whole number 0.
def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    clock = 0
    for phase in range(2):
        for step in range(n - 1):
            clock += alpha + beta * nbytes / n
    return clock
