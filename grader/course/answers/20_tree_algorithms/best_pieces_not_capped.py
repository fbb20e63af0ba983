"""A piece has at least one byte: there are at most nbytes pieces."""
# exercise: best_pieces
# diagnosis: wrong_value


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2:
        return 1
    root = math.floor(math.sqrt((n - 2) * nbytes * beta / alpha))
    candidates = [max(1, k) for k in (root, root + 1)]
    return min(candidates, key=lambda k: (n - 2 + k) * (alpha + nbytes * beta / k))
