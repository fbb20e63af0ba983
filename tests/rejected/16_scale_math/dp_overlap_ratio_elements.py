# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# hint: multiply by bytes_per_element
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 / (2 * tokens) * (dp - 1) / dp * peak_flops / peak_bandwidth
