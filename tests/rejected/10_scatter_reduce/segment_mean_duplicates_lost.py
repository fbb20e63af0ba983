# exercise: segment_mean
# diagnosis: wrong_value
# hint: only the last is in the sum
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1])
    sums[segment_ids] += values
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
