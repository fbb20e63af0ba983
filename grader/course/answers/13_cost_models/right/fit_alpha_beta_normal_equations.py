# exercise: fit_alpha_beta
# diagnosis: none
def fit_alpha_beta(sizes, seconds):
    n, sx, sy = len(sizes), sum(sizes), sum(seconds)
    sxx = sum(s * s for s in sizes)
    sxy = sum(s * t for s, t in zip(sizes, seconds))
    det = n * sxx - sx * sx
    alpha, beta = (sxx * sy - sx * sxy) / det, (n * sxy - sx * sy) / det
    if alpha < 0:
        alpha, beta = 0.0, sxy / sxx
    elif beta < 0:
        alpha, beta = sy / n, 0.0
    return alpha, beta
