# exercise: segment_mean
# diagnosis: wrong_value
# hint: include_self=False
import torch


def segment_mean(values, segment_ids, num_segments):
    # The built-in mean counts the zeros that it starts with.
    zeros = values.new_zeros(num_segments, values.shape[1])
    index = segment_ids[:, None].expand_as(values)
    return zeros.scatter_reduce(0, index, values, "mean")
