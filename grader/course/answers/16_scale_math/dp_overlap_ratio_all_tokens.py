"""tokens are those of one replica. Do not multiply by dp."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 / dp * ratio(dp_times(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element))
