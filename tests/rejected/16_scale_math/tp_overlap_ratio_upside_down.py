# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# hint: upside down
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 2 * hidden / (tp - 1) / bytes_per_element * peak_bandwidth / peak_flops
