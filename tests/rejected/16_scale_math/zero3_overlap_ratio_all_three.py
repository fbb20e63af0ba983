# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# hint: all three communications
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return (
        3
        * bytes_per_element
        / (2 * seq * micro_batch)
        * (dp - 1)
        / dp
        * peak_flops
        / peak_bandwidth
    )
