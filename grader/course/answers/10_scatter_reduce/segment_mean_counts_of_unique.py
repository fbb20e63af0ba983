"""After an empty segment, sums are divided by the number of rows of another one: unique leaves out
the ids that do not occur, so its counts move up. torch.bincount(segment_ids,
minlength=num_segments) has a count for each segment."""
# exercise: segment_mean
# diagnosis: wrong_value
# or: FILL = 0.0

FILL = 1.0


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = values.new_full((num_segments,), FILL)
    found = segment_ids.unique(return_counts=True)[1]
    counts[: len(found)] = found.to(counts.dtype)
    means = sums / counts[:, None]
    return means if FILL else means.nan_to_num(0.0, 0.0, 0.0)
