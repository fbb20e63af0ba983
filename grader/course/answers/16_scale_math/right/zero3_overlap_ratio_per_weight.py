# exercise: zero3_overlap_ratio
# diagnosis: none
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    tokens = seq * micro_batch
    bytes_in = bytes_per_element * (dp - 1) / dp
    return bytes_in * peak_flops / peak_bandwidth / tokens / 2
