"""That is an eighth of it. beta is in seconds per byte, and the answer is in bytes: there are no
bits here.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return meet(n, alpha, beta, n - 1 - levels, levels - (n - 1) / n) / 8
