# exercise: best_pieces
# diagnosis: wrong_value
# hint: k − 1 rounds later
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.floor(math.sqrt((n - 1) * nbytes * beta / alpha))
    candidates = [max(1, min(k, nbytes)) for k in (root, root + 1)]
    return min(candidates, key=lambda k: (n - 1 + k) * (alpha + nbytes * beta / k))
