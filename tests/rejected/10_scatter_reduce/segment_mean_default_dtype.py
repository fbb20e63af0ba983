# exercise: segment_mean
# diagnosis: exception
# hint: the dtype of values
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = torch.zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
