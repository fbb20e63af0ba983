# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: a line through zero
def fit_alpha_beta(sizes, seconds):
    return 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
