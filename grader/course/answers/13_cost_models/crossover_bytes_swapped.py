"""alpha and beta are swapped: the higher the latency, the larger the size must be, so alpha
belongs in the numerator.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    if n <= 3 or alpha == 0:
        return 0.0
    if beta == 0:
        return math.inf
    levels = (n - 1).bit_length()
    return (n - 1 - levels) * beta / ((levels - (n - 1) / n) * alpha)
