"""The first piece passes n − 1 links, but the last one starts k − 1 rounds later: n − 2 + k rounds
in all. So the root is of (n − 2)·S·β/α."""
# exercise: best_pieces
# diagnosis: wrong_value
# or: RIGHT = True
# or: MINUS = 0
# or: MINUS = 0; RIGHT = True

MINUS = 1
RIGHT = False


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    low = math.floor(math.sqrt((n - MINUS) * nbytes * beta / alpha))
    candidates = [max(1, min(k, nbytes)) for k in (low, low + 1)]
    rounds = n - 2 if RIGHT else n - MINUS
    return min(candidates, key=lambda k: (rounds + k) * (alpha + nbytes * beta / k))
