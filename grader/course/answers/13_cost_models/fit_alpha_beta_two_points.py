"""That is the line through the first and the last point. All points count: least squares."""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# or: HELD = "best for the two"

HELD = "as everywhere"


def fit_alpha_beta(sizes, seconds):
    beta = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
    if HELD == "best for the two":
        sizes, seconds = [sizes[0], sizes[-1]], [seconds[0], seconds[-1]]
    return allowed(seconds[0] - beta * sizes[0], beta, sizes, seconds)
