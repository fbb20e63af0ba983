"""Two tensors of different dtypes meet in this line. Make new tensors with the dtype of values:
values.new_zeros(...) does, torch.zeros(...) alone makes float32.
"""
# exercise: segment_mean
# diagnosis: exception
# or: WAY = "scatter_add"
# or: WAY = "matrix"

WAY = "index_add"


def segment_mean(values, segment_ids, num_segments):
    sums = torch.zeros(num_segments, values.shape[1])
    if WAY == "index_add":
        sums = sums.index_add(0, segment_ids, values)
    elif WAY == "scatter_add":
        sums = sums.scatter_add(0, segment_ids[:, None].expand_as(values), values)
    else:
        sums = (torch.arange(num_segments)[:, None] == segment_ids).float() @ values
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
