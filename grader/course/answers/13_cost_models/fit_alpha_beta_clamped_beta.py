"""Where the times fall, you set beta to zero and left alpha as it was. But alpha was the best only
together with the negative beta. With beta held at zero, fit alpha again.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    if alpha < 0:
        return 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
    return alpha, max(beta, 0.0)
