# exercise: segment_mean
# diagnosis: wrong_shape
# hint: An empty one has a row of zeros
import torch


def segment_mean(values, segment_ids, num_segments):
    return torch.stack([values[segment_ids == s].mean(0) for s in segment_ids.unique()])
