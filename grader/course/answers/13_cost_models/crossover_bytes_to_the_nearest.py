"""The tree's rounds are rounded to the nearest whole number, which may be too small: 5 ranks take
3. Round up.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    levels = round(math.log2(n))
    return meet(n, alpha, beta, n - 1 - levels, levels - (n - 1) / n)
