# exercise: algorithm_bandwidth
# diagnosis: none
from fractions import Fraction


def algorithm_bandwidth(nbytes, seconds):
    return float(Fraction(nbytes) / Fraction(seconds))
