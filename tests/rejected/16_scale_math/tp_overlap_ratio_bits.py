# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# hint: do not multiply by 8
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 8 * bytes_per_element * (tp - 1) / (2 * hidden) * peak_flops / peak_bandwidth
