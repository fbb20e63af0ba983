# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: not the mean of t / S
def fit_alpha_beta(sizes, seconds):
    count = len(sizes)
    x, y = sum(sizes) / count, sum(seconds) / count
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    if alpha < 0:
        return 0.0, sum(t / s for s, t in zip(sizes, seconds)) / count
    if beta < 0:
        return y, 0.0
    return alpha, beta
