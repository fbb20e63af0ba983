"""It is 2/3 of what it should be, as it would be beside the whole step with its 6 operations.
Gradients appear only in the backward pass, which has 4."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# not: forward pass


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    return 4 / 6 * ratio(dp_times(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element))
