# exercise: tp_overlap_ratio
# diagnosis: wrong_type
# hint: Return one number
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    ratio = bytes_per_element * (tp - 1) / (2 * hidden) * peak_flops / peak_bandwidth
    return ratio, ratio <= 1
