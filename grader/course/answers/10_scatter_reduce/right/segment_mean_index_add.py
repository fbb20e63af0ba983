# exercise: segment_mean
# diagnosis: none
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = torch.zeros(num_segments, values.shape[1], dtype=values.dtype)
    sums = sums.index_add(0, segment_ids, values)
    counts = torch.zeros(num_segments, dtype=values.dtype)
    counts = counts.index_add(0, segment_ids, torch.ones(len(values), dtype=values.dtype))
    return sums / counts.clamp(min=1).unsqueeze(1)
