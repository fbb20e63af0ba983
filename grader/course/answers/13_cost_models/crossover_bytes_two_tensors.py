"""That is right if a rank on the ring sends the tensor twice. It sends 2(n − 1)/n of it."""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return meet(n, alpha, beta, n - 1 - levels, levels - 1)
