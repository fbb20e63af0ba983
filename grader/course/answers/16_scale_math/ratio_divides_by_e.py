"""You divide by bytes_per_element. Longer elements mean more bytes: multiply."""
# exercise: dp_overlap_ratio, zero3_overlap_ratio, tp_overlap_ratio, pp_overlap_ratio
# diagnosis: wrong_value


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return ratio(dp_times(tokens, dp, peak_flops, peak_bandwidth, 1 / bytes_per_element))


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = zero3_times(
        seq, micro_batch, dp, peak_flops, peak_bandwidth, 1 / bytes_per_element
    )
    return ratio(times)


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, 1 / bytes_per_element))


def pp_overlap_ratio(hidden, layers_in_next_stage, peak_flops, peak_bandwidth, bytes_per_element):
    times = pp_times(
        hidden, layers_in_next_stage, peak_flops, peak_bandwidth, 1 / bytes_per_element
    )
    return ratio(times)
