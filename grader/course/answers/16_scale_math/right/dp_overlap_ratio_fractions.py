# exercise: dp_overlap_ratio
# diagnosis: none
from fractions import Fraction


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    ratio = Fraction(bytes_per_element * (dp - 1), 2 * tokens * dp)
    return float(ratio * Fraction(peak_flops) / Fraction(peak_bandwidth))
