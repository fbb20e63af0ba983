# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# hint: multiply by bytes_per_element
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 / (2 * seq * micro_batch) * (dp - 1) / dp * peak_flops / peak_bandwidth
