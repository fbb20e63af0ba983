# exercise: ring_all_reduce_seconds
# diagnosis: none
from fractions import Fraction


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    seconds = 2 * (n - 1) * (Fraction(alpha) + Fraction(nbytes, n) * Fraction(beta))
    return float(seconds)
