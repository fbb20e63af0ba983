# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# hint: multiply by bytes_per_element
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 * (tp - 1) / (2 * hidden) * peak_flops / peak_bandwidth
