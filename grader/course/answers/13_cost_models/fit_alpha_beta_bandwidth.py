"""The second number should be seconds per byte. You return bytes per second, one divided by it."""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    alpha, beta = allowed(*line(sizes, seconds), sizes, seconds)
    return alpha, 1 / beta
