# exercise: crossover_bytes
# diagnosis: none
# A search for it, without solving anything.
import math


def crossover_bytes(n, alpha, beta):
    def slower(nbytes):
        levels = (n - 1).bit_length()
        ring = 2 * (n - 1) * (alpha + nbytes / n * beta)
        tree = 2 * levels * (alpha + nbytes * beta)
        return ring > tree

    if not slower(0):
        return 0
    low, high = 0.0, 1.0
    while slower(high):
        low, high = high, 2 * high
        if high > 1e30:
            return math.inf
    for _ in range(200):
        middle = (low + high) / 2
        if slower(middle):
            low = middle
        else:
            high = middle
    return high
