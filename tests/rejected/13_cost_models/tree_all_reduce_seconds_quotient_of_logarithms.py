# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: a hair above a whole number
import math


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * math.ceil(math.log(n, 2)) * (alpha + nbytes * beta)
