"""That line has the least squares of *relative* errors. It is a good choice for a plot with
logarithmic axes, but here the errors count in seconds.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    u, v = [1 / t for t in seconds], [s / t for s, t in zip(sizes, seconds)]
    uu, vv = sum(a * a for a in u), sum(b * b for b in v)
    uv = sum(a * b for a, b in zip(u, v))
    determinant = uu * vv - uv * uv
    alpha = (vv * sum(u) - uv * sum(v)) / determinant
    beta = (uu * sum(v) - uv * sum(u)) / determinant
    return allowed(alpha, beta, sizes, seconds)
