"""All columns of a row are equal: the mean is taken over the columns as well. Over the rows of a
segment it is .mean(0), and .mean() is that of all numbers."""
# exercise: segment_mean
# diagnosis: wrong_value


def segment_mean(values, segment_ids, num_segments):
    out = values.new_zeros(num_segments, values.shape[1])
    for s in segment_ids.unique().tolist():
        out[s] = values[segment_ids == s].mean()
    return out
