"""Where the times fall, your beta is negative. No byte takes less than no time: hold beta at zero
there, and fit alpha alone.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    if alpha < 0:
        return 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
    return alpha, beta
