# exercise: crossover_bytes
# diagnosis: timeout
# hint: can take very many steps
# not: There may be no such size
# Tries every size: on a large cluster there are many.
import math


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    if n - 1 <= levels or alpha == 0:
        return 0.0
    if beta == 0:
        return math.inf
    size = 0
    while (n - 1) * (alpha + size / n * beta) > levels * (alpha + size * beta):
        size += 1
    return size
