"""The other way round: alpha first, then beta."""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# or: SIGNS = "of the other"

SIGNS = "of itself"


def fit_alpha_beta(sizes, seconds):
    alpha, beta = allowed(*line(sizes, seconds), sizes, seconds)
    if SIGNS == "of the other":  # polyfit has given the slope first
        return allowed(*line(sizes, seconds)[::-1], sizes, seconds)
    return beta, alpha
