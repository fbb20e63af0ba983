"""It is DP times too large. Do you have DP − 1 where (DP − 1)/DP belongs, since a shard is 1/DP of
the weights? Or do you divide the tokens by dp? seq and micro_batch are already those of one
replica."""
# exercise: zero3_overlap_ratio
# diagnosis: wrong_value


def zero3_overlap_ratio(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element):
    times = zero3_times(seq, micro_batch, dp, peak_flops, peak_bandwidth, bytes_per_element)
    return dp * ratio(times)
