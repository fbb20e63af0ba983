"""The last segments may be empty, so segment_ids.max() + 1 is not the number of segments:
num_segments is.
"""
# exercise: segment_mean
# diagnosis: wrong_shape
# or: WAY = "bincount"

WAY = "max"


def segment_mean(values, segment_ids, num_segments):
    n = int(segment_ids.max()) + 1 if WAY == "max" else len(torch.bincount(segment_ids))
    sums = values.new_zeros(n, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=n)
    return sums / counts.clamp(min=1)[:, None]
