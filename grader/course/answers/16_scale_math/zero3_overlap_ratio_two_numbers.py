# exercise: zero3_overlap_ratio
# diagnosis: wrong_type
# hint: Return one number
def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    ratio = (
        bytes_per_element / (2 * seq * micro_batch) * (dp - 1) / dp * peak_flops / peak_bandwidth
    )
    return ratio, ratio <= 1
