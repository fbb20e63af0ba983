"""The root is rounded up. The best whole number may be the one below it: compare the seconds of
both."""
# exercise: best_pieces
# diagnosis: wrong_value
# or: CAPPED = False

CAPPED = True


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    k = max(1, math.ceil(math.sqrt((n - 2) * nbytes * beta / alpha)))
    return min(k, nbytes) if CAPPED and nbytes else k
