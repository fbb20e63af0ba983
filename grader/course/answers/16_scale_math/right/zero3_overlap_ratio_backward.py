# exercise: zero3_overlap_ratio
# diagnosis: none
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    params = 7.0
    sending = (
        2 * bytes_per_element * params * (1 - 1 / dp) / peak_bandwidth
    )  # gather and reduce-scatter
    computing = 4 * seq * micro_batch * params / peak_flops
    return sending / computing if dp > 1 else 0
