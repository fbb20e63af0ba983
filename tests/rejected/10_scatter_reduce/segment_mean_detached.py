# exercise: segment_mean
# diagnosis: wrong_gradient
# hint: gets lost
# says: gradient of values
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = torch.zeros(num_segments, values.shape[1], dtype=values.dtype)
    sums.index_add_(0, segment_ids, values.detach())
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
