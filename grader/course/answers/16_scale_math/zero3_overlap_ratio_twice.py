"""It is twice as large as it should be. Do you send as much as an all-reduce, or as the backward
pass? Forward it is one all-gather. Or do you count a multiplication and its addition as one
operation? They are two."""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = zero3_times(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element)
    return 2 * ratio(times)
