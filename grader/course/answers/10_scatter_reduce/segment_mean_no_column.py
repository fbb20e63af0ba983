"""One tensor here has a number for each segment, the other one for each column. To divide the sums
by the counts, make a column of them: counts[:, None].
"""
# exercise: segment_mean
# diagnosis: exception
# or: LEAST = 0

LEAST = 1


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=LEAST)
