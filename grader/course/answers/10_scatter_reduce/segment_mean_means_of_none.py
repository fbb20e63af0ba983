# exercise: segment_mean
# diagnosis: wrong_value
# hint: in mean() too
import torch


def segment_mean(values, segment_ids, num_segments):
    return torch.stack([values[segment_ids == s].mean(0) for s in range(num_segments)])
