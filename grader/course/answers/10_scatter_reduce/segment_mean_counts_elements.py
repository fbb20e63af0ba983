"""Each mean is divided by the number of columns as well. The sum goes over the rows of a segment: divide
it by how many rows there are, not by how many elements.
"""
# exercise: segment_mean
# diagnosis: wrong_value


def segment_mean(values, segment_ids, num_segments):
    columns = values.shape[1]
    sums = values.new_zeros(num_segments, columns).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids, minlength=num_segments) * columns
    return sums / counts.clamp(min=1)[:, None].to(values.dtype)
