# exercise: crossover_bytes
# diagnosis: none
import math


def crossover_bytes(n, alpha, beta):
    if alpha == 0 or n <= 3:
        return 0.0
    if beta == 0:
        return float("inf")
    ring_at_0, ring_slope = 2 * (n - 1) * alpha, 2 * (n - 1) / n * beta
    tree_at_0, tree_slope = (2 * math.ceil(math.log2(n)) * x for x in (alpha, beta))
    return (ring_at_0 - tree_at_0) / (tree_slope - ring_slope)
