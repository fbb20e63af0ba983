# exercise: crossover_bytes
# diagnosis: wrong_type
# hint: math.inf
def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    if n <= 3 or alpha == 0:
        return 0.0
    if beta == 0:
        return None
    return (n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)
