"""values belongs to the caller, who needs its gradient: do not write into it. values * factor makes
a new tensor.
"""
# exercise: segment_mean
# diagnosis: exception


def segment_mean(values, segment_ids, num_segments):
    counts = torch.bincount(segment_ids, minlength=num_segments)
    values /= counts[segment_ids][:, None]
    return values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
