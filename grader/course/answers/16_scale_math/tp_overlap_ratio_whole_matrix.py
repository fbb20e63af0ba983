"""You have (TP − 1)/TP where TP − 1 belongs. Is the computation that of the whole matrix? Each device
has 1/TP of it, which cancels the TP below. Or are the activations divided by TP once more? What
comes from the others is (TP − 1)/TP of them."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return 1 / tp * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
