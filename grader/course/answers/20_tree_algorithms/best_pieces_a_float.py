# exercise: best_pieces
# diagnosis: wrong_type
# hint: as a Python int
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    return max(1.0, math.sqrt((n - 2) * nbytes * beta / alpha) // 1)
