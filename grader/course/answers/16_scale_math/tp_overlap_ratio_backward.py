"""It is half as large as it should be, as it would be beside the backward pass with its 4
operations. Forward there are 2."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 0.5 * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
