# exercise: fit_alpha_beta
# diagnosis: wrong_shape
# hint: Return two numbers
def fit_alpha_beta(sizes, seconds):
    count = len(sizes)
    x, y = sum(sizes) / count, sum(seconds) / count
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    return alpha, beta, max(abs(alpha + beta * s - t) for s, t in zip(sizes, seconds))
