# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# hint: beside the forward pass
# not: one phase
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (tokens) * (dp - 1) / dp * peak_flops / peak_bandwidth
