"""It is half as large as it should be, as if the all-reduce were one phase. It has two: a
reduce-scatter and an all-gather."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# not: forward pass


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 0.5 * ratio(dp_times(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element))
