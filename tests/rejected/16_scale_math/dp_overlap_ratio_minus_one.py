# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# hint: Do you have DP − 1
# not: You divide tokens
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (2 * tokens) * (dp - 1) * peak_flops / peak_bandwidth
