"""The bytes of the ring are missing. They are fewer than the tree's, but they do count: 2(n − 1)/n
of the tensor.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return meet(n, alpha, beta, n - 1 - levels, levels)
