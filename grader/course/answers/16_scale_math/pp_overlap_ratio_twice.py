"""It is twice as large as it should be. Are gradients counted beside the activations? They come
back later; forward only activations go. Or are a multiplication and its addition one operation?
They are two: 32h² for a token and a block."""
# exercise: pp_overlap_ratio
# diagnosis: wrong_value


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element)
    return 2 * ratio(times)
