# exercise: zero3_overlap_ratio
# diagnosis: none
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    block = 16 * 4096**2
    sending = block * bytes_per_element * (dp - 1) / dp / peak_bandwidth
    computing = 2 * seq * micro_batch * block / peak_flops
    return sending / computing
