# exercise: best_pieces
# diagnosis: wrong_value
# hint: On two ranks nothing is passed on
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return n
    root = math.floor(math.sqrt((n - 2) * nbytes * beta / alpha))
    candidates = [max(1, min(k, nbytes)) for k in (root, root + 1)]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
