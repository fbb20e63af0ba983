"""Where bytes cost nothing you answer inf. But the ring is no slower there, and the answer
is 0, up to 3 ranks, which take it no more steps than the tree, and where a latency costs nothing
either."""
# exercise: crossover_bytes
# diagnosis: wrong_value


def crossover_bytes(n, alpha, beta):
    if beta == 0 and n > 1:
        return math.inf
    return meet(n, alpha, beta, n - 1 - (n - 1).bit_length(), (n - 1).bit_length() - (n - 1) / n)
