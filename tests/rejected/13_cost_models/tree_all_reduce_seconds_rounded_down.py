# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# hint: rounded down
import math


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * int(math.log2(n)) * (alpha + nbytes * beta)
