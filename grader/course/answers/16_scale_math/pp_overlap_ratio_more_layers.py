"""More layers hide more: divide by their number."""
# exercise: pp_overlap_ratio
# diagnosis: wrong_value


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element)
    return layers_in_next_stage**2 * ratio(times)
