# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# hint: upside down
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 2 * tokens * dp / (dp - 1) / bytes_per_element * peak_bandwidth / peak_flops
