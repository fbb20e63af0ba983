"""The h is missing: a token sends h numbers, and is computed with h². One h stays below."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return hidden * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
