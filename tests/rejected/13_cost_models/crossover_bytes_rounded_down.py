# exercise: crossover_bytes
# diagnosis: wrong_value
# hint: rounded down: 5 ranks
# not: rounded up
import math


def crossover_bytes(n, alpha, beta):
    if n <= 3 or alpha == 0:
        return 0.0
    if beta == 0:
        return math.inf
    levels = (n - 1).bit_length()
    return (n - 1 - (n.bit_length() - 1)) * alpha / ((n.bit_length() - 1 - (n - 1) / n) * beta)
