# exercise: segment_mean
# diagnosis: none
# The built-in mean: where nothing is reduced, the zeros stay.
import torch


def segment_mean(values, segment_ids, num_segments):
    zeros = values.new_zeros(num_segments, values.size(1))
    index = segment_ids[:, None].expand_as(values)
    return zeros.scatter_reduce(0, index, values, "mean", include_self=False)
