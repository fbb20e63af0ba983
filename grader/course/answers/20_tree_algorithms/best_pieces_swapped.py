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
        low = math.floor(root)
        candidates = [max(1, min(k, nbytes)) for k in (low, low + 1)]
        return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
    return max(1, min(round(root), nbytes))
