"""One h cancels: the activations of a token are h numbers, the matrix is h²."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 / hidden * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
