# exercise: best_pieces
# diagnosis: wrong_value
# hint: alpha and beta are swapped
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2 or beta == 0:
        return 1
    root = math.floor(math.sqrt((n - 2) * nbytes * alpha / beta))
    candidates = [max(1, min(k, nbytes)) for k in (root, root + 1)]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
