# exercise: ring_all_reduce_seconds
# diagnosis: none
# What it returns is a float64 of numpy.
import numpy as np


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    chunks = np.full(2 * (n - 1), nbytes / n)
    return np.sum(alpha + beta * chunks)
