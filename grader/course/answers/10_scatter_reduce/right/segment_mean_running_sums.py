# exercise: segment_mean
# diagnosis: none
import torch
import torch.nn.functional as F


def segment_mean(values, segment_ids, num_segments):
    order = torch.argsort(segment_ids)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    ends = counts.cumsum(0)
    running = F.pad(values[order].cumsum(0), (0, 0, 1, 0))
    return (running[ends] - running[ends - counts]) / counts.clamp(min=1)[:, None]
