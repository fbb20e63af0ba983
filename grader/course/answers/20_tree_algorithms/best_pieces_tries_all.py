# exercise: best_pieces
# diagnosis: timeout
# hint: Trying every number


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    return min(range(1, max(nbytes, 1) + 1), key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
