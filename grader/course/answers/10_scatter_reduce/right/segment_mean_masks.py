# exercise: segment_mean
# diagnosis: none
# Segment by segment; a loop over rows would be allowed too.
import torch


def segment_mean(values, segment_ids, num_segments):
    means = []
    for segment in range(num_segments):
        rows = values[segment_ids == segment]
        means.append(rows.mean(0) if len(rows) else rows.sum(0))
    return torch.stack(means)
