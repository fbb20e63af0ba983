# exercise: crossover_bytes
# diagnosis: none
import math


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    latency = (n - 1 - levels) * alpha
    if latency <= 0:
        return 0
    if beta == 0:
        return math.inf
    return latency / ((levels - (n - 1) / n) * beta)
