# exercise: pp_overlap_ratio
# diagnosis: wrong_value
# hint: upside down
def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    return 32 * hidden * layers_in_next_stage / bytes_per_element * peak_bandwidth / peak_flops
