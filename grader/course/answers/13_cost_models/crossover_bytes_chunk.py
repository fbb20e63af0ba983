"""That is the size of a chunk. Return the size of the whole tensor, n times as much."""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return meet(n, alpha, beta, n - 1 - levels, levels - (n - 1) / n) / n
