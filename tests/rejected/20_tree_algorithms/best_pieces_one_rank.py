# exercise: best_pieces
# diagnosis: exception
# hint: negative and has no root
import math


def best_pieces(n, nbytes, alpha, beta):
    root = math.floor(math.sqrt((n - 2) * nbytes * beta / alpha))
    candidates = [max(1, min(k, nbytes)) for k in (root, root + 1)]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
