"""It is TP times as large as it should be. Do h numbers of a token come from each other device? A
device has h/TP of them. Or is the work divided by TP once too often?"""
# exercise: tp_overlap_ratio
# diagnosis: wrong_value


def tp_overlap_ratio(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element):
    return tp * ratio(tp_times(hidden, tp, peak_flops, peak_bandwidth, bytes_per_element))
