"""You fit the sizes to the seconds. Here the errors count in seconds: in beta divide by the squares of
the sizes about their mean, not by those of the seconds.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    x, y = sum(sizes) / len(sizes), sum(seconds) / len(seconds)
    products = sum((s - x) * (t - y) for s, t in zip(sizes, seconds))
    if products == 0:
        return y, 0.0
    beta = sum((t - y) ** 2 for t in seconds) / products
    return allowed(y - beta * x, beta, sizes, seconds)
