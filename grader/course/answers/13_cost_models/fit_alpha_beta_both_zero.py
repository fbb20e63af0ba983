"""Both are zero here. Only one had to be held at zero, if any; fit the other again."""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# not: left the other as it was


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    return (alpha, beta) if min(alpha, beta) >= 0 else (0.0, 0.0)
