"""That is the size at which one message has as much latency as transfer. Find the size at which
two whole algorithms cost the same: set the two formulas equal, and solve for it.
"""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    return meet(n, alpha, beta, 1, 1)
