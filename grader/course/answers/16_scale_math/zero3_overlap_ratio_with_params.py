# exercise: zero3_overlap_ratio
# diagnosis: exception
# hint: because it cancels
# not: keep these
def zero3_overlap_ratio(
    seq, micro_batch, params, dp, peak_flops, peak_bandwidth, bytes_per_element
):
    communication = params * bytes_per_element * (dp - 1) / dp / peak_bandwidth
    return communication / (2 * seq * micro_batch * params / peak_flops)
