# exercise: crossover_bytes
# diagnosis: none
import math


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    dearer = max(0, n - 1 - levels) * alpha
    try:
        return dearer / ((levels - (n - 1) / n) * beta)
    except ZeroDivisionError:
        return math.inf if dearer else 0
