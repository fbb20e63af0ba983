"""It is half as large as it should be. Is the all-reduce one phase? It has two: a reduce-scatter and
an all-gather. Or are 8 operations counted, with recomputation? The backward pass alone has 4."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# not: forward pass


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 0.5 * ratio(dp_times(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element))
