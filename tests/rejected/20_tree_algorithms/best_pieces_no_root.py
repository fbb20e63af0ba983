# exercise: best_pieces
# diagnosis: wrong_value
# hint: square root is missing
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    k = math.floor((n - 2) * nbytes * beta / alpha)
    return max(1, min(k, nbytes))
