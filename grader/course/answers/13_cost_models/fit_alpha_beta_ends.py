"""That is the line through the smallest and the largest size alone. All points count: least
squares."""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# or: HELD = "through the largest"
# or: HELD = "best for the two"
# or: LAST = "first of several"
# or: HELD = "through the largest"; LAST = "first of several"

HELD = "as everywhere"
LAST = "slowest of several"


def fit_alpha_beta(sizes, seconds):
    points = sorted(zip(sizes, seconds))
    (s, t), (size, time) = points[0], points[-1]
    if LAST == "first of several":
        time = seconds[sizes.index(size)]
    beta = (time - t) / (size - s)
    alpha = t - beta * s
    if HELD == "through the largest" and alpha < 0:
        return 0.0, time / size
    if HELD == "best for the two":
        return allowed(alpha, beta, [s, size], [t, time])
    return allowed(alpha, beta, sizes, seconds)
