# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# hint: Or do you divide tokens by dp
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    tokens = tokens / dp
    return bytes_per_element / (2 * tokens) * (dp - 1) / dp * peak_flops / peak_bandwidth
