# exercise: fit_alpha_beta
# diagnosis: none
# Floats of numpy are as good as Python's.
import numpy as np


def fit_alpha_beta(sizes, seconds):
    s, t = np.array(sizes, dtype=float), np.array(seconds)
    alpha, beta = np.linalg.lstsq(np.stack([np.ones_like(s), s], axis=1), t, rcond=None)[0]
    if alpha < 0:
        alpha, beta = 0, s @ t / (s @ s)
    elif beta < 0:
        alpha, beta = t.mean(), 0
    return alpha, beta
