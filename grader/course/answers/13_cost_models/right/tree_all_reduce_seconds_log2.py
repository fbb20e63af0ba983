# exercise: tree_all_reduce_seconds
# diagnosis: none
import math


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * math.ceil(math.log2(n)) * (alpha + beta * nbytes)
