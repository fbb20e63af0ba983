# exercise: pp_overlap_ratio
# diagnosis: exception
# hint: because it cancels
# not: number of parameters
def pp_overlap_ratio(
    tokens, hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element
):
    return bytes_per_element / (32 * hidden * layers_in_next_stage) * peak_flops / peak_bandwidth
