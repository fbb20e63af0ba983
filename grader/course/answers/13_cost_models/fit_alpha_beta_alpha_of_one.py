"""Where the times fall, beta is held at zero, as it should be, and alpha is not the best: least
squares of t − alpha are at the mean of all seconds.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value
# or: OF = "the largest"
# or: OF = "the first"
# or: OF = "the last"
# or: OF = "the median"

OF = "the smallest"


def fit_alpha_beta(sizes, seconds):
    alpha, beta = line(sizes, seconds)
    if beta >= 0:
        return allowed(alpha, beta, sizes, seconds)
    ordered, half = sorted(seconds), len(seconds) // 2
    held = {
        "the smallest": ordered[0],
        "the largest": ordered[-1],
        "the first": seconds[0],
        "the last": seconds[-1],
        "the median": (ordered[half] + ordered[~half]) / 2,
    }[OF]
    return held, 0.0
