"""The root is rounded to the nearest whole number. Just below 1.5 that is 1, where 2 pieces are
faster: compare the seconds of both neighbours."""
# exercise: best_pieces
# diagnosis: wrong_value
# or: CAPPED = False

CAPPED = True


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    k = max(1, round(math.sqrt((n - 2) * nbytes * beta / alpha)))
    return min(k, nbytes) if CAPPED and nbytes else k
