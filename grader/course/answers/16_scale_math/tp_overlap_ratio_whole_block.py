"""It is a 16th of what it should be, as it would be beside a whole block, 16h². The question is
about one matrix of h²."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 / 16 * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
