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
        return nearest(root, n, nbytes, alpha, beta)
    return max(1, min(round(root), nbytes))
