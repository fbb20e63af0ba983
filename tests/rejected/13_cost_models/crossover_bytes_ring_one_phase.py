# exercise: crossover_bytes
# diagnosis: wrong_value
# hint: one phase of the ring
import math


def crossover_bytes(n, alpha, beta):
    if n <= 3 or alpha == 0:
        return 0.0
    if beta == 0:
        return math.inf
    levels = (n - 1).bit_length()
    return (n - 1 - 2 * levels) * alpha / ((2 * levels - (n - 1) / n) * beta)
