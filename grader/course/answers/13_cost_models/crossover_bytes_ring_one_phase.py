"""You compare one phase of the ring with both ways of the tree: a ring has 2(n − 1) steps."""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return meet(n, alpha, beta, n - 1 - 2 * levels, 2 * levels - (n - 1) / n)
