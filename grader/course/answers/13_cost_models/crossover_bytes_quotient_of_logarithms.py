"""math.log(n, 2) is log(n) / log(2), one rounded number by another, and for this n the result is
a hair above a whole number; rounded up, it is one too many. Use math.log2(n), or (n -
1).bit_length().
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = math.ceil(math.log(n, 2))
    return meet(n, alpha, beta, n - 1 - levels, levels - (n - 1) / n)
