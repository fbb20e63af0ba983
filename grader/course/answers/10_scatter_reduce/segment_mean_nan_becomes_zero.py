"""A mean that is nan because nan stands among its rows has become 0. Only the mean of a segment without
rows is 0: look at the counts, and not at the means, as in sums / counts.clamp(min=1)[:, None]."""
# exercise: segment_mean
# diagnosis: wrong_value
# or: WHERE = True
import torch

WHERE = False


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    means = sums / torch.bincount(segment_ids, minlength=num_segments)[:, None]
    return torch.where(means.isnan(), 0, means) if WHERE else means.nan_to_num()
