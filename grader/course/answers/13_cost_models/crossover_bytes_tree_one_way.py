"""You compare two phases of the ring with one way of the tree, which goes up and comes down again:
2⌈log₂ n⌉ messages.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return meet(n, alpha, beta, 2 * (n - 1) - levels, levels - 2 * (n - 1) / n)
