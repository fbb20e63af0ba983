"""You multiply by 8. beta is in seconds per byte, and nbytes are bytes: there are no bits here."""
# exercise: best_pieces
# diagnosis: wrong_value
# or: EVERYWHERE = False

EVERYWHERE = True


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.sqrt((n - 2) * 8 * nbytes * beta / alpha)
    return nearest(root, n, nbytes, alpha, (8 if EVERYWHERE else 1) * beta)
