# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: hold beta at zero
def fit_alpha_beta(sizes, seconds):
    n = len(sizes)
    x, y = sum(sizes) / n, sum(seconds) / n
    b = sum((s - x) * (t - y) for s, t in zip(sizes, seconds)) / sum((s - x) ** 2 for s in sizes)
    a = y - b * x
    if a < 0:
        return 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
    return a, b
