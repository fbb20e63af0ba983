"""That is the time for one device's part of the activations. TP − 1 parts come, one from each other
device."""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value
# or: ASKS_FIRST = True

ASKS_FIRST = False


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    if ASKS_FIRST and tp == 1:
        return 0.0
    communication = bytes_per_element * hidden / tp / peak_bandwidth
    return communication / (2 * hidden**2 / tp / peak_flops)
