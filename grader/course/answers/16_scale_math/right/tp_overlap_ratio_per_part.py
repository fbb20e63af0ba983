# exercise: tp_overlap_ratio
# diagnosis: none
def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    part = hidden / tp
    heard = (tp - 1) * part * bytes_per_element
    operations = 2 * hidden * part
    return (heard / peak_bandwidth) / (operations / peak_flops)
