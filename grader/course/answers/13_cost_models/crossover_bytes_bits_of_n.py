"""One round too many where n is a power of two: 8 ranks take 3 and not 4. Neither n.bit_length()
nor int(log₂ n) + 1 is ⌈log₂ n⌉ there; (n - 1).bit_length() is.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = n.bit_length()
    return meet(n, alpha, beta, n - 1 - levels, levels - (n - 1) / n)
