"""The bytes of the ring are too few. In each of its 2(n − 1) steps a rank sends a chunk of S/n, and
you count one chunk for a phase of n − 1 steps.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return meet(n, alpha, beta, n - 1 - levels, levels - 1 / n)
