"""Where the line would begin below zero, you set alpha to zero and left beta as it was. But beta
was the best only together with the negative alpha. With alpha held at zero, fit beta again."""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    if beta < 0:
        return sum(seconds) / len(seconds), 0.0
    return max(alpha, 0.0), beta
