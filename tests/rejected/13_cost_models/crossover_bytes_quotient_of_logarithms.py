# exercise: crossover_bytes
# diagnosis: wrong_value
# hint: a hair above a whole number
import math


def crossover_bytes(n, alpha, beta):
    if n <= 3 or alpha == 0:
        return 0.0
    if beta == 0:
        return math.inf
    levels = math.ceil(math.log(n, 2))
    return (n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)
