"""Everything is divided by the number of segments. Each segment has a count of its own:
torch.bincount(segment_ids, minlength=num_segments)."""
# exercise: segment_mean
# diagnosis: wrong_value


def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    return sums / num_segments
