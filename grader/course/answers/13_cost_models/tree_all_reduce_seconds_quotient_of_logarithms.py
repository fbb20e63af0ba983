"""math.log(n, 2) is log(n) / log(2), one rounded number by another, and for this n the result is
a hair above a whole number; rounded up, it is one too many. Use math.log2(n), or (n -
1).bit_length().
"""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = math.ceil(math.log(n, 2))
    return 2 * levels * (alpha + nbytes * beta)
