"""There are fewer counts than segments: unique leaves out the ids that do not occur, and an empty
segment has none. torch.bincount(segment_ids, minlength=num_segments) has a count for each."""
# exercise: segment_mean
# diagnosis: exception


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = segment_ids.unique(return_counts=True)[1]
    return sums / counts[:, None].to(values.dtype)
