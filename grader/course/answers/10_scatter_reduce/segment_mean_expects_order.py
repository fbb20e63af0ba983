"""The rows of a segment need not be next to each other: row i belongs to segment segment_ids[i]."""
# exercise: segment_mean
# diagnosis: wrong_value


def segment_mean(values, segment_ids, num_segments):
    sizes = torch.bincount(segment_ids, minlength=num_segments).tolist()
    pieces = values.split(sizes)
    return torch.stack([p.mean(0) if len(p) else p.sum(0) for p in pieces])
