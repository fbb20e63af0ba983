"""It is half as large as it should be, as if one all-gather stood against the backward pass with
its 4 operations. Forward there are 2."""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# not: whole step


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = zero3_times(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element)
    return 0.5 * ratio(times)
