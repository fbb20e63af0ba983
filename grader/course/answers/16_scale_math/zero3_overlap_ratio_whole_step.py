"""It is a third of what it should be, as if one all-gather stood against the whole step with its 6
operations. Forward there are 2."""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# not: backward pass


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = zero3_times(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element)
    return 2 / 6 * ratio(times)
