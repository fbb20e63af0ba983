"""Only the segments that have rows are in the result. An empty one has a row of zeros."""
# exercise: segment_mean
# diagnosis: wrong_shape
# or: WAY = "unique"

WAY = "one after the other"


def segment_mean(values, segment_ids, num_segments):
    there, places = segment_ids.unique(return_inverse=True)
    if WAY == "unique":
        sums = values.new_zeros(len(there), values.shape[1]).index_add(0, places, values)
        return sums / torch.bincount(places)[:, None]
    return torch.stack([values[segment_ids == s].mean(0) for s in there])
