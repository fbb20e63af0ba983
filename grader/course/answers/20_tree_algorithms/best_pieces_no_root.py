"""The square root is missing: the derivative of kα + (n − 2)Sβ/k is zero where k² = (n − 2)Sβ/α.
"""
# exercise: best_pieces
# diagnosis: wrong_value
# or: NEIGHBOURS = True
# or: ROUND = math.ceil
# or: ROUND = round

NEIGHBOURS = False
ROUND = math.floor


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    square = (n - 2) * nbytes * beta / alpha
    if NEIGHBOURS:
        low = math.floor(square)
        candidates = [max(1, min(k, nbytes)) for k in (low, low + 1)]
        return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
    return max(1, min(ROUND(square), nbytes))
