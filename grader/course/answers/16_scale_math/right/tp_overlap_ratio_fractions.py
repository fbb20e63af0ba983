# exercise: tp_overlap_ratio
# diagnosis: none
from fractions import Fraction


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    ratio = Fraction(bytes_per_element * (tp - 1), 2 * hidden)
    return float(ratio * Fraction(peak_flops) / Fraction(peak_bandwidth))
