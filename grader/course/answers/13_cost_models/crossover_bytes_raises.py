# exercise: crossover_bytes
# diagnosis: exception
# hint: is never as fast
# not: before you divide
def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    if n - 1 <= levels or alpha == 0:
        return 0.0
    if beta == 0:
        raise ValueError("never")
    return (n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)
