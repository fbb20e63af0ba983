# exercise: dp_overlap_ratio
# diagnosis: exception
# hint: because it cancels
# not: tokens is no argument
def dp_overlap_ratio(tokens, params, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (2 * tokens) * (dp - 1) / dp * peak_flops / peak_bandwidth
