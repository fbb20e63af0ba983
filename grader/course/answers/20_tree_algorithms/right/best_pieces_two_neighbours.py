# exercise: best_pieces
# diagnosis: none
import math


def best_pieces(n, nbytes, alpha, beta):
    if n <= 2 or nbytes == 0:
        return 1
    low = int(math.sqrt((n - 2) * nbytes * beta / alpha))
    low = min(max(low, 1), nbytes)
    high = min(low + 1, nbytes)

    def cost(k):
        return (n - 2 + k) * (alpha + nbytes * beta / k)

    return low if cost(low) <= cost(high) else high
