"""Where several rows belong to one segment, only the last is in the sum. An assignment replaces
what was there, and sums[segment_ids] += values reads all the old sums before it writes any:
index_add adds every row."""
# exercise: segment_mean
# diagnosis: wrong_value


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1])
    sums[segment_ids] += values
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
