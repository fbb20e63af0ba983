# exercise: segment_mean
# diagnosis: wrong_value
# hint: one too large
# not: include_self
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments) + 1
    return sums / counts[:, None]
