"""It is three times as large as it should be, as if all three communications had to be hidden
behind the forward pass. Forward there is one, and 2 operations; backward there are two, and 4
operations."""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = zero3_times(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element)
    return 3 * ratio(times)
