# exercise: segment_mean
# diagnosis: wrong_value
# hint: These are the sums
import torch


def segment_mean(values, segment_ids, num_segments):
    return values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
