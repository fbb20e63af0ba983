# exercise: crossover_bytes
# diagnosis: wrong_value
# hint: is never as fast
def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    if beta == 0 or n == 1:
        return 0.0
    return (n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)
