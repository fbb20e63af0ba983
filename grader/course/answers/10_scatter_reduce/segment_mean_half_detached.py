# exercise: segment_mean
# diagnosis: wrong_gradient
# hint: upstream gradient
# not: No gradient reaches
# One half of every row is added with a gradient, the other half without.
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1])
    sums = sums.index_add(0, segment_ids, values / 2)
    sums = sums.index_add(0, segment_ids, values.detach() / 2)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
