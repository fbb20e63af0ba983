# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# hint: a whole block
# not: backward pass
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element * (tp - 1) / (32 * hidden) * peak_flops / peak_bandwidth
