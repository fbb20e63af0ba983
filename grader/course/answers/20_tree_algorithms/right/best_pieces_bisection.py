# exercise: best_pieces
# diagnosis: none


def best_pieces(n, nbytes, alpha, beta):
    """The cost falls and then rises: find the first k after which it does not fall."""

    def seconds(k):
        return (n - 2 + k) * (alpha + nbytes * beta / k)

    if n <= 2:
        return 1
    low, high = 1, max(1, nbytes)
    while low < high:
        middle = (low + high) // 2
        if seconds(middle + 1) < seconds(middle):
            low = middle + 1
        else:
            high = middle
    return low
