# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# hint: Take dp = 4
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return (
        bytes_per_element / (20 * seq * micro_batch) * (dp - 1) / dp * peak_flops / peak_bandwidth
    )
