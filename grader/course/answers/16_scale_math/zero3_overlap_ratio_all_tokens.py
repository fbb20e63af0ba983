"""You divide by the tokens of all replicas. A replica computes its own alone, seq · micro_batch."""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = zero3_times(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element)
    return 1 / dp * ratio(times)
