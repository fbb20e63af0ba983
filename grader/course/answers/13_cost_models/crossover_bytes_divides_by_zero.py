# exercise: crossover_bytes
# diagnosis: exception
# hint: ask for those cases before you divide
def crossover_bytes(n, alpha, beta):
    levels = (n - 1).bit_length()
    return (n - 1 - levels) * alpha / ((levels - (n - 1) / n) * beta)
