"""It is DP times too large. Do you have DP − 1 where (DP − 1)/DP belongs, since a chunk is 1/DP of
the gradients? Or do you divide tokens by dp? They are already those of one replica."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return dp * ratio(dp_times(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element))
