# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: the first and the last point
def fit_alpha_beta(sizes, seconds):
    beta = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
    return max(0.0, seconds[0] - beta * sizes[0]), max(0.0, beta)
