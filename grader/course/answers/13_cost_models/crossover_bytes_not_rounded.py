"""The tree's rounds have to be rounded up: ⌈log₂ n⌉, since rounds are whole."""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = math.log2(n)
    return meet(n, alpha, beta, n - 1 - levels, levels - (n - 1) / n)
