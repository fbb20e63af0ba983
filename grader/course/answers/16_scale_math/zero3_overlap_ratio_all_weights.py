"""Every rank has 1/DP of the weights already. Only the other (DP − 1)/DP are sent."""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value
# or: ASKS_FIRST = True

ASKS_FIRST = False


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    if ASKS_FIRST and dp == 1:
        return 0.0
    communication = bytes_per_element / peak_bandwidth
    return communication / (2 * seq * micro_batch / peak_flops)
