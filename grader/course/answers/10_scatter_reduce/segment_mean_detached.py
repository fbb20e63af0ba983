"""No gradient reaches values. It gets lost through .data, .detach(), .item(), .tolist(),
torch.tensor(...) and torch.no_grad(): stay with torch operations on values."""
# exercise: segment_mean
# diagnosis: wrong_gradient
# says: gradient of values


def segment_mean(values, segment_ids, num_segments):
    sums = torch.zeros(num_segments, values.shape[1], dtype=values.dtype)
    sums.index_add_(0, segment_ids, values.detach())
    counts = torch.bincount(segment_ids, minlength=num_segments)
    return sums / counts.clamp(min=1)[:, None]
