# exercise: fit_alpha_beta
# diagnosis: exception
# hint: divide by neither
def fit_alpha_beta(sizes, seconds):
    count = len(sizes)
    x, y = sum(sizes) / count, sum(seconds) / count
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    if alpha < 0:
        alpha, beta = 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
    elif beta < 0:
        alpha, beta = y, 0.0
    error = sum((alpha + beta * s - t) ** 2 for s, t in zip(sizes, seconds))
    assert error / sum(t * t for t in seconds) < 1
    return alpha, beta
