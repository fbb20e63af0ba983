"""log₂ n is rounded to the nearest whole number, which may be too small: 5 ranks take 3 rounds,
not 2. Round up.
"""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = round(math.log2(n))
    return 2 * levels * (alpha + nbytes * beta)
