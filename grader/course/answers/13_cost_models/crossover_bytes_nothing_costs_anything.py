"""Where a latency costs nothing, only the bytes count, and the ring has fewer of those: it is no
slower at any size, so the answer is 0, even where bytes cost nothing either."""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    if beta == 0:
        return math.inf if n > 3 else 0.0
    if n <= 3:
        return 0.0
    levels = (n - 1).bit_length()
    return (n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)
