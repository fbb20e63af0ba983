# exercise: dp_overlap_ratio
# diagnosis: none
def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    params = 12_345
    sending = params * bytes_per_element * 2 * (dp - 1) / dp / peak_bandwidth
    computing = 4 * tokens * params / peak_flops
    return sending / computing
