# exercise: tp_overlap_ratio
# diagnosis: none
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    tokens = 2048
    sending = tokens * hidden * bytes_per_element * (tp - 1) / tp / peak_bandwidth
    computing = 2 * tokens * hidden * hidden / tp / peak_flops
    return sending / computing
