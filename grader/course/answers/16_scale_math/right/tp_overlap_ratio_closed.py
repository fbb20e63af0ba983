# exercise: tp_overlap_ratio
# diagnosis: none
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element * (tp - 1) / (2 * hidden) * peak_flops / peak_bandwidth
