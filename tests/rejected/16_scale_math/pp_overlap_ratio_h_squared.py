# exercise: pp_overlap_ratio
# diagnosis: wrong_value
# hint: a block is 16h²
def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (32 * hidden**2 * layers_in_next_stage) * peak_flops / peak_bandwidth
