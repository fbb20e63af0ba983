"""The number of ranks is missing: the longer the chain, the more pieces pay off."""
# exercise: best_pieces
# diagnosis: wrong_value
# or: NEIGHBOURS = False

NEIGHBOURS = True


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.sqrt(nbytes * beta / alpha)
    if NEIGHBOURS:
        low = math.floor(root)
        candidates = [max(1, min(k, nbytes)) for k in (low, low + 1)]
        return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
    return max(1, min(round(root), nbytes))
