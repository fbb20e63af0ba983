# exercise: pp_overlap_ratio
# diagnosis: wrong_value
# hint: do not multiply by 8
def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    return (
        8 * bytes_per_element / (32 * hidden * layers_in_next_stage) * peak_flops / peak_bandwidth
    )
