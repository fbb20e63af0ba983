"""The other way round: alpha first, then beta."""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    alpha, beta = allowed(*line(sizes, seconds), sizes, seconds)
    return beta, alpha
