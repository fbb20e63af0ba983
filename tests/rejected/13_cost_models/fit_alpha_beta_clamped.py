# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: left the other as it was
# not: is negative | Both are zero
def fit_alpha_beta(sizes, seconds):
    count = len(sizes)
    x, y = sum(sizes) / count, sum(seconds) / count
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    return max(alpha, 0.0), max(beta, 0.0)
