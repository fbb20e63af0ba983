# exercise: ring_all_reduce_seconds
# diagnosis: wrong_value
# hint: rounded up to whole bytes
import math


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + math.ceil(nbytes / n) * beta)
