# exercise: pp_overlap_ratio
# diagnosis: wrong_value
# hint: hidden = 2, two layers
def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (320 * hidden * layers_in_next_stage) * peak_flops / peak_bandwidth
