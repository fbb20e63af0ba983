# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# hint: Take dp = 4
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (20 * tokens) * (dp - 1) / dp * peak_flops / peak_bandwidth
