# exercise: pp_overlap_ratio
# diagnosis: none
def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (32 * hidden * layers_in_next_stage) * peak_flops / peak_bandwidth
