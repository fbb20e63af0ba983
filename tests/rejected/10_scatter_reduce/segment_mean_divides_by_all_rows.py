# exercise: segment_mean
# diagnosis: wrong_value
# hint: number of all rows
import torch


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    return sums / max(len(values), 1)
