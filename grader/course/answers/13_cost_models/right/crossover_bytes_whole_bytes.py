# exercise: crossover_bytes
# diagnosis: none
# The first whole number of bytes.
import math


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    if n <= 3 or alpha == 0:
        return 0
    if beta == 0:
        return math.inf
    return math.ceil((n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta))
