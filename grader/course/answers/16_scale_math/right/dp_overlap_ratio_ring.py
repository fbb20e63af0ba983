# exercise: dp_overlap_ratio
# diagnosis: none
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    chunk = bytes_per_element / dp
    steps = 2 * (dp - 1)
    return steps * chunk * peak_flops / (4 * tokens * peak_bandwidth)
