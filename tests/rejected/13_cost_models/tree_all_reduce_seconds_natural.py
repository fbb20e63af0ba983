# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: the natural logarithm
import math


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * math.ceil(math.log(n)) * (alpha + nbytes * beta)
