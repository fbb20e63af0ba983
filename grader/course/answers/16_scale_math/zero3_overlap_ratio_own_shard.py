"""That is the time for one shard, 1/DP of the weights. A rank has its own shard already, and gets all
the others: (DP − 1)/DP of the weights.
"""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return bytes_per_element / dp / peak_bandwidth / (2 * seq * micro_batch / peak_flops)
