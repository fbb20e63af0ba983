"""It is twice as large as it should be. Is the computation that of the forward pass, with its 2
operations? Gradients appear only in the backward pass, which has 4. Or are a multiplication and
its addition one operation? They are two."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# not: one phase


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 2 * ratio(dp_times(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element))
