# exercise: segment_mean
# diagnosis: wrong_shape
# hint: columns of values
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments).index_add(0, segment_ids, values.mean(1))
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)
