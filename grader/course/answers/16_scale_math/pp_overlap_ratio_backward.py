"""It is half as large as it should be, as it would be beside the backward pass with its 64h² for a
token and a block. Activations go forward, beside 32h²."""
# exercise: pp_overlap_ratio
# diagnosis: wrong_value
# not: whole step


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element)
    return 0.5 * ratio(times)
