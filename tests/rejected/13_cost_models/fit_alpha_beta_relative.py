# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: relative* errors
import numpy as np


def fit_alpha_beta(sizes, seconds):
    w = [1 / t for t in seconds]
    design = np.stack([w, np.multiply(w, sizes)], axis=1)
    alpha, beta = np.linalg.lstsq(design, np.ones(len(w)), rcond=None)[0]
    return float(alpha), float(beta)
