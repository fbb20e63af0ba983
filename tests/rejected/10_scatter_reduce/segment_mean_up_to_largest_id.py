# exercise: segment_mean
# diagnosis: wrong_shape
# hint: num_segments is
import torch


def segment_mean(values, segment_ids, num_segments):
    n = int(segment_ids.max()) + 1
    sums = values.new_zeros(n, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=n)
    return sums / counts.clamp(min=1)[:, None]
