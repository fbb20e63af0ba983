# exercise: best_pieces
# diagnosis: exception
# hint: by anything that may be 0
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.floor(math.sqrt((n - 2) * nbytes / (alpha / beta)))
    candidates = [max(1, min(k, nbytes)) for k in (root, root + 1)]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
