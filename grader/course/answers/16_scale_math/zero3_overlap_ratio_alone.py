# exercise: zero3_overlap_ratio
# diagnosis: exception
# hint: alone sends nothing
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    tokens = seq * micro_batch
    others = 1 + 1 / (dp - 1)
    return bytes_per_element / (2 * tokens) / others * peak_flops / peak_bandwidth
