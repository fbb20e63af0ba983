"""That is the natural logarithm. In each round the number of ranks doubles: the base is 2, as in
math.log2.
"""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# or: ROUNDS = False

ROUNDS = True


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = math.ceil(math.log(n)) if ROUNDS else math.log(n)
    return 2 * levels * (alpha + nbytes * beta)
