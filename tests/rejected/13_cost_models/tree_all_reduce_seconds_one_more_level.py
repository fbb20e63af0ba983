# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: nor int(log₂ n) + 1
# not: rounded down
import math


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = int(math.log2(n)) + 1 if n > 1 else 0
    return 2 * levels * (alpha + nbytes * beta)
