# exercise: segment_mean
# diagnosis: exception
# hint: -
# not: different dtypes | new_zeros
import torch


def segment_mean(values, segment_ids, num_segments):
    ids = segment_ids.to(values.dtype)
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
