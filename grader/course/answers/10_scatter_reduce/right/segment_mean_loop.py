# exercise: segment_mean
# diagnosis: none
# A loop over rows, and zeros without a gradient where there are none.
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = [torch.zeros(values.shape[1], dtype=values.dtype) for _ in range(num_segments)]
    counts = [0] * num_segments
    for row, segment in zip(values, segment_ids.tolist()):
        sums[segment] = sums[segment] + row
        counts[segment] += 1
    return torch.stack([s / max(c, 1) for s, c in zip(sums, counts)])
