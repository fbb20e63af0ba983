# exercise: crossover_bytes
# diagnosis: wrong_value
# hint: Up to 3 ranks
import math


def crossover_bytes(n, alpha, beta):
    if n <= 2:
        return math.inf  # they cost the same, so the ring is never faster
    if n == 3 or alpha == 0:
        return 0.0
    if beta == 0:
        return math.inf
    levels = (n - 1).bit_length()
    return (n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)
