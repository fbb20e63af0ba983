# exercise: best_pieces
# diagnosis: wrong_value
# hint: rounded down
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.sqrt((n - 2) * nbytes * beta / alpha)
    return max(1, min(math.floor(root), nbytes))
