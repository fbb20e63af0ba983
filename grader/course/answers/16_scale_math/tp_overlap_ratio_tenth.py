# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# hint: Take one token, tp = 4
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element * (tp - 1) / (20 * hidden) * peak_flops / peak_bandwidth
