"""Every token adds to the computation, so more tokens hide more: divide by them."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = dp_times(1 / tokens, dp, peak_flops, peak_bandwidth, bytes_per_element)
    return ratio(times)
