"""That is a line through zero: alpha is left out. Fit both numbers, and hold alpha at zero only
where it would be negative.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    return 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
