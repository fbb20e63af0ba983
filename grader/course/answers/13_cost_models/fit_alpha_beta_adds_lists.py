# exercise: fit_alpha_beta
# diagnosis: exception
# hint: -
# not: may be 0 | divide by neither
def fit_alpha_beta(sizes, seconds):
    beta = (seconds - seconds[0]) / (sizes - sizes[0])
    return seconds[0] - beta * sizes[0], beta
