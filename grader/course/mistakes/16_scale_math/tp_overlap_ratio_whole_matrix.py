"""You have (TP − 1)/TP where TP − 1 belongs. Each device has 1/TP of the matrix, so it computes
1/TP as long: that cancels the TP below."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 / tp * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
