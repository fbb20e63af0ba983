"""n may be 1, and then n − 2 is negative and has no root. On one rank or two nothing is passed on,
so one piece is best."""
# exercise: best_pieces
# diagnosis: exception
# or: SQRT = False

SQRT = True


def best_pieces(n, nbytes, alpha, beta):
    square = (n - 2) * nbytes * beta / alpha
    root = math.sqrt(square) if SQRT else square**0.5
    low = math.floor(root)
    candidates = [max(1, min(k, nbytes)) for k in (low, low + 1)]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
