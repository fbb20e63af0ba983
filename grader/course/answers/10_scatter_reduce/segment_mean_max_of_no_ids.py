# exercise: segment_mean
# diagnosis: exception
# hint: There may be no rows at all
# The largest of no numbers is asked for.
import torch


def segment_mean(values, segment_ids, num_segments):
    assert segment_ids.max() < num_segments
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
