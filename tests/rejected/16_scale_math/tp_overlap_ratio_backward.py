# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# hint: beside the backward pass
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element * (tp - 1) / (4 * hidden) * peak_flops / peak_bandwidth
