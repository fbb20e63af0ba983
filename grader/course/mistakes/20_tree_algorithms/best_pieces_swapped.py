"""alpha and beta are swapped: a longer latency speaks for fewer pieces."""
# exercise: best_pieces
# diagnosis: wrong_value
# or: NEIGHBOURS = False

NEIGHBOURS = True


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2 or beta == 0:
        return 1
    root = math.sqrt((n - 2) * nbytes * alpha / beta)
    if NEIGHBOURS:
        return nearest(root, n, nbytes, alpha, beta)
    return max(1, min(round(root), nbytes))
