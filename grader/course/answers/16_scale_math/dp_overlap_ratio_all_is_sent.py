"""A ring sends (DP − 1)/DP of the gradients, twice. With one rank there is nothing to send."""
# exercise: dp_overlap_ratio
# diagnosis: wrong_value
# or: ASKS_FIRST = True

ASKS_FIRST = False


def dp_overlap_ratio(tokens, dp, peak_flops, peak_bandwidth, bytes_per_element):
    if ASKS_FIRST and dp == 1:
        return 0.0
    communication = bytes_per_element * 2 / peak_bandwidth
    return communication / (4 * tokens / peak_flops)
