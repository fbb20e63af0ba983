# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# hint: more tokens hide more
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / 2 * (dp - 1) / dp * peak_flops / peak_bandwidth
