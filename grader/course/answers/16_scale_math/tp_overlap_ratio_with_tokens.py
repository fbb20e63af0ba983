# exercise: tp_overlap_ratio
# diagnosis: exception
# hint: because it cancels
# not: number of parameters
def tp_overlap_ratio(tokens, hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element * (tp - 1) / (2 * hidden) * peak_flops / peak_bandwidth
