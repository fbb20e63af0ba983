"""With alpha at zero, beta is not the mean of t / S. The least squares of t − beta · S are at
sum(S · t) / sum(S · S).
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    if alpha < 0:
        return 0.0, sum(t / s for s, t in zip(sizes, seconds)) / len(sizes)
    return allowed(alpha, beta, sizes, seconds)
