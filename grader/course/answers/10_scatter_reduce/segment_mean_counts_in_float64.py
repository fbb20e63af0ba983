# exercise: segment_mean
# diagnosis: wrong_dtype
# hint: Integer counts leave it as it is
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.zeros(num_segments, 1, dtype=torch.float64)
    counts.index_add_(0, segment_ids, torch.ones(len(values), 1, dtype=torch.float64))
    return sums / counts.clamp(min=1)
