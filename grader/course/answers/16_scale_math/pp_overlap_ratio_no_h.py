"""The h is missing: a token sends h numbers, and is computed with 16h². One h stays below."""
# exercise: pp_overlap_ratio
# diagnosis: wrong_value


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element)
    return hidden * ratio(times)
