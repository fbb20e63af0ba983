# exercise: crossover_bytes
# diagnosis: wrong_value
# hint: The size is rounded to whole bytes.
# Rounds up to whole bytes
import math


def crossover_bytes(n, alpha, beta):
    L = (n - 1).bit_length()
    a = (n - 1 - L) * alpha
    if a <= 0:
        return 0.0
    if beta == 0:
        return math.inf
    return float(math.ceil(a / ((L - (n - 1) / n) * beta)))
