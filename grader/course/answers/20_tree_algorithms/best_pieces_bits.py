"""You multiply by 8. beta is in seconds per byte, and nbytes are bytes: there are no bits here."""
# exercise: best_pieces
# diagnosis: wrong_value
# or: EVERYWHERE = False

EVERYWHERE = True


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    bits = 8 * nbytes
    low = math.floor(math.sqrt((n - 2) * bits * beta / alpha))
    candidates = [max(1, min(k, nbytes)) for k in (low, low + 1)]
    size = bits if EVERYWHERE else nbytes
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + size * beta / k))
