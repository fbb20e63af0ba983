# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: squares of alpha + beta
# not: float32 | float64
# As many digits as a table shows.
def fit_alpha_beta(sizes, seconds):
    count = len(sizes)
    x, y = sum(sizes) / count, sum(seconds) / count
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    if alpha < 0:
        return 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
    if beta < 0:
        return y, 0.0
    return round(alpha, 7), beta
