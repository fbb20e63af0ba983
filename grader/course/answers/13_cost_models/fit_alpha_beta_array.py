# exercise: fit_alpha_beta
# diagnosis: wrong_type
# hint: Return a tuple of two numbers
import numpy as np


def fit_alpha_beta(sizes, seconds):
    return np.polyfit(sizes, seconds, 1)[::-1]
