# exercise: pp_overlap_ratio
# diagnosis: none
def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    tokens = 8192
    sending = tokens * hidden * bytes_per_element / peak_bandwidth
    computing = 2 * tokens * 16 * hidden**2 * layers_in_next_stage / peak_flops
    return sending / computing
