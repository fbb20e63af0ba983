# exercise: fit_alpha_beta
# diagnosis: none
# Always the best of one, while the other is held.
def fit_alpha_beta(sizes, seconds):
    scale = max(sizes)
    x = [s / scale for s in sizes]
    alpha = beta = 0.0
    xx = sum(v * v for v in x)
    for _ in range(5000):
        alpha = max(0.0, sum(t - beta * v for v, t in zip(x, seconds)) / len(x))
        beta = max(0.0, sum(v * (t - alpha) for v, t in zip(x, seconds)) / xx)
    return alpha, beta / scale
