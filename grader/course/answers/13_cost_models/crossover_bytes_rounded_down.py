"""The tree's rounds are rounded down: 5 ranks take 3."""
# exercise: crossover_bytes
# diagnosis: wrong_value
# not: rounded up


def crossover_bytes(n, alpha, beta):
    levels = n.bit_length() - 1
    return meet(n, alpha, beta, n - 1 - levels, levels - (n - 1) / n)
