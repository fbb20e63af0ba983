"""One h cancels: the activations of a token are h numbers, a block is 16h²."""
# exercise: pp_overlap_ratio
# diagnosis: wrong_value


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element)
    return 1 / hidden * ratio(times)
