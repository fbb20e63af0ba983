"""These are the sums: divide each by the number of its rows."""
# exercise: segment_mean
# diagnosis: wrong_value


def segment_mean(values, segment_ids, num_segments):
    return values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
