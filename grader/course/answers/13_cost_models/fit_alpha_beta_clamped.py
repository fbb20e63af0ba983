"""You set the negative number to zero and left the other as it was. But the other was the best
only together with the negative one. With one held at zero, fit the other again.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# not: is negative | Both are zero


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    return max(alpha, 0.0), max(beta, 0.0)
