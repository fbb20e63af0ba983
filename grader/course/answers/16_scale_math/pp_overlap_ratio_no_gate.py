"""It is 4/3 of what it should be, as it would be with blocks of 12h². The block here is gated,
16h²: 32h² operations for a token."""
# exercise: pp_overlap_ratio
# diagnosis: wrong_value


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element)
    return 16 / 12 * ratio(times)
