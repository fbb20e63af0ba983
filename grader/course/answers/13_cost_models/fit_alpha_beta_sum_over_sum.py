"""Where alpha is held at zero, your beta is all seconds divided by all bytes. Least squares counts a
large size for more: Σ S·t / Σ S².
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# or: FALLS = "stays"

FALLS = "is held at zero"


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    if beta < 0 and FALLS == "is held at zero":
        return sum(seconds) / len(seconds), 0.0
    if alpha < 0:
        return 0.0, sum(seconds) / sum(sizes)
    return alpha, beta
