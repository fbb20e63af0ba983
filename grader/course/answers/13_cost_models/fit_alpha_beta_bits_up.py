"""Your beta is 8 times too large. Sizes are in bytes, and beta is in seconds per byte: there are
no bits here.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    alpha, beta = allowed(*line(sizes, seconds), sizes, seconds)
    return alpha, 8 * beta
