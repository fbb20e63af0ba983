"""torch.bincount(segment_ids) counts as far as the largest id that there is, and the last segments
may be empty: minlength=num_segments gives a count to each.
"""
# exercise: segment_mean
# diagnosis: exception

def segment_mean(values, segment_ids, num_segments):
    sums = values.new_zeros(num_segments, values.shape[1]).index_add(0, segment_ids, values)
    counts = torch.bincount(segment_ids)
    return sums / counts.clamp(min=1)[:, None]
