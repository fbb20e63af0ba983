"""An empty segment has sum 0 and count 0, and 0/0 is nan, in mean() too. Its mean should be 0:
divide the sum by counts.clamp(min=1).
"""
# exercise: segment_mean
# diagnosis: wrong_value
# not: makes the gradient nan
# or: WAY = "matrix"

WAY = "index_add"


def segment_mean(values, segment_ids, num_segments):
    if WAY == "matrix":
        members = (torch.arange(num_segments)[:, None] == segment_ids).to(values.dtype)
        return members @ values / members.sum(1, keepdim=True)
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts[:, None]
