# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: Only one had
# not: left the other as it was to be held at zero
def fit_alpha_beta(sizes, seconds):
    count = len(sizes)
    x, y = sum(sizes) / count, sum(seconds) / count
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    alpha = y - beta * x
    return (alpha, beta) if min(alpha, beta) >= 0 else (0.0, 0.0)
