# exercise: segment_mean
# diagnosis: wrong_value
# hint: 0/0 is nan
# not: makes the gradient nan
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts[:, None]
