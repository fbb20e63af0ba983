# exercise: crossover_bytes
# diagnosis: timeout
# hint: is never as fast
def crossover_bytes(n, alpha, beta):
    def no_slower(nbytes):
        levels = (n - 1).bit_length()
        return 2 * (n - 1) * (alpha + nbytes / n * beta) <= 2 * levels * (alpha + nbytes * beta)

    if no_slower(0):
        return 0
    low, high = 0.0, 1.0
    while not no_slower(high):
        low, high = high, 2 * high
    while high - low > 0.5:
        middle = (low + high) / 2
        if no_slower(middle):
            high = middle
        else:
            low = middle
    return high
