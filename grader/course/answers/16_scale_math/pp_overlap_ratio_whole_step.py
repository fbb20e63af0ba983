"""It is a third of what it should be, as it would be beside the whole step with its 96h².
Activations go forward, beside 32h² operations for a token and a block."""
# exercise: pp_overlap_ratio
# diagnosis: wrong_value


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element)
    return 2 / 6 * ratio(times)
