"""One of the two is negative. No message takes less than no time: look for the best line among
those with neither alpha nor beta below 0.
"""
# exercise: fit_alpha_beta
# diagnosis: wrong_value


def fit_alpha_beta(sizes, seconds):
    return line(sizes, seconds)
