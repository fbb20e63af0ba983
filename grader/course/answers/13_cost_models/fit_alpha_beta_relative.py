"""That line has the least squares of *relative* errors. It is a good choice for a plot with
logarithmic axes, but here the errors count in seconds.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# or: NO_TIME = 1.0
# or: HELD = "relative"
# or: NO_TIME = 1.0; HELD = "relative"

NO_TIME = 0.0
HELD = "as everywhere"


def fit_alpha_beta(sizes, seconds):
    u = [1 / (t or NO_TIME) for t in seconds]
    v = [s * a for s, a in zip(sizes, u)]
    w = [t * a for t, a in zip(seconds, u)]
    uu, vv = sum(a * a for a in u), sum(b * b for b in v)
    uv = sum(a * b for a, b in zip(u, v))
    wu, wv = sum(a * c for a, c in zip(u, w)), sum(b * c for b, c in zip(v, w))
    determinant = uu * vv - uv * uv
    alpha = (vv * wu - uv * wv) / determinant
    beta = (uu * wv - uv * wu) / determinant
    if HELD == "relative" and min(alpha, beta) < 0:
        return (0.0, wv / vv) if alpha < 0 else (wu / uu, 0.0)
    return allowed(alpha, beta, sizes, seconds)
