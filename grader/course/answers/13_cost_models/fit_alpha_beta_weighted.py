# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: relative
def fit_alpha_beta(sizes, seconds):
    w = [1 / (t * t) if t else 1.0 for t in seconds]
    W = sum(w)
    mx = sum(a * s for a, s in zip(w, sizes)) / W
    my = sum(a * t for a, t in zip(w, seconds)) / W
    sxx = sum(a * (s - mx) ** 2 for a, s in zip(w, sizes))
    beta = sum(a * (s - mx) * (t - my) for a, s, t in zip(w, sizes, seconds)) / sxx
    alpha = my - beta * mx
    if alpha < 0:
        return 0.0, sum(a * s * t for a, s, t in zip(w, sizes, seconds)) / sum(
            a * s * s for a, s in zip(w, sizes)
        )
    if beta < 0:
        return my, 0.0
    return alpha, beta
