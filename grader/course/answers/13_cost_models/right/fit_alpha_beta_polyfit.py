# exercise: fit_alpha_beta
# diagnosis: none
# A list is as good as a tuple.
import numpy as np


def fit_alpha_beta(sizes, seconds):
    beta, alpha = np.polyfit(sizes, seconds, 1)
    if alpha < 0:
        beta = np.dot(sizes, seconds) / np.dot(sizes, sizes)
        return [0, float(beta)]
    if beta < 0:
        return [float(np.mean(seconds)), 0]
    return [float(alpha), float(beta)]
