# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# hint: upside down
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 2 * seq * micro_batch * dp / (dp - 1) / bytes_per_element * peak_bandwidth / peak_flops
