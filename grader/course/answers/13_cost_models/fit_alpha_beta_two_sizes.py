# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: smallest and the largest size
def fit_alpha_beta(sizes, seconds):
    pairs = sorted(zip(sizes, seconds))
    (s0, t0), (s1, t1) = pairs[0], pairs[-1]
    beta = (t1 - t0) / (s1 - s0)
    alpha = t0 - beta * s0
    if alpha < 0:
        return 0.0, t1 / s1
    if beta < 0:
        return sum(seconds) / len(seconds), 0.0
    return alpha, beta
