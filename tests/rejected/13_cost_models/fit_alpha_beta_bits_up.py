# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: 8 times too large
def fit_alpha_beta(sizes, seconds):
    count = len(sizes)
    x, y = sum(sizes) / count, sum(seconds) / count
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    return max(0.0, alpha), max(0.0, 8 * beta)
