# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# hint: 1/DP of the weights already
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / (2 * seq * micro_batch) * 1 * peak_flops / peak_bandwidth
