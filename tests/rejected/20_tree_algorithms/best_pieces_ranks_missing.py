# exercise: best_pieces
# diagnosis: wrong_value
# hint: number of ranks is missing
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.floor(math.sqrt(nbytes * beta / alpha))
    candidates = [max(1, min(k, nbytes)) for k in (root, root + 1)]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
