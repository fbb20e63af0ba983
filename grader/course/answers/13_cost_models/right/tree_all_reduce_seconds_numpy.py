# exercise: tree_all_reduce_seconds
# diagnosis: none
import numpy as np


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * np.ceil(np.log2(n)) * (alpha + beta * nbytes)
