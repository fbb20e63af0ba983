"""Every count is one too large. To avoid 0/0, raise only the counts that are 0, as
counts.clamp(min=1) does; the built-in mean counts the zeros that it starts with as one more row,
unless include_self=False leaves them out.
"""
# exercise: segment_mean
# diagnosis: wrong_value


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments) + 1
    return sums / counts[:, None]
