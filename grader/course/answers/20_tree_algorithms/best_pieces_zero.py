# exercise: best_pieces
# diagnosis: wrong_value
# hint: never below 1
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.floor(math.sqrt((n - 2) * nbytes * beta / alpha))
    candidates = [min(k, nbytes) for k in (root, root + 1)]
    candidates = [k for k in candidates if k] or [0]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / max(k, 1)))
