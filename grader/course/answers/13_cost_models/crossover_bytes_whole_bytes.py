"""The size is rounded to whole bytes. The model does not round: return the number itself."""

# or: ROUNDED = int
# or: ROUNDED = round
# exercise: crossover_bytes
# diagnosis: wrong_value
import math

ROUNDED = math.ceil


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    if n <= 3 or alpha == 0:
        return 0.0
    if beta == 0:
        return math.inf
    return float(ROUNDED((n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)))
