"""It is twice as large as it should be. Do you send twice? It is one all-gather, or one
reduce-scatter, and no all-reduce. Or do you count a multiplication and its addition as one
operation? They are two."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 2 * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
