# exercise: best_pieces
# diagnosis: none
from fractions import Fraction
from math import isqrt


def best_pieces(n, nbytes, alpha, beta):
    """k + 1 pieces are better than k as long as k(k + 1)α < (n − 2)Sβ."""
    if n <= 2:
        return 1
    square = Fraction(beta) * (n - 2) * nbytes / Fraction(alpha)
    k = isqrt(int(square))
    if k * (k + 1) < square:
        k += 1
    return max(1, min(k, nbytes))
