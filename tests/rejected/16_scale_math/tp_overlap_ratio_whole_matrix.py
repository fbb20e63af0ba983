# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# hint: computes 1/TP as long
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element * (tp - 1) / tp / (2 * hidden) * peak_flops / peak_bandwidth
