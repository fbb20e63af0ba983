# exercise: segment_mean
# diagnosis: wrong_gradient
# hint: .tolist()
import torch


def segment_mean(values, segment_ids, num_segments):
    means = []
    for segment in range(num_segments):
        rows = [r for r, s in zip(values.tolist(), segment_ids.tolist()) if s == segment]
        columns = zip(*rows) if rows else [[0.0]] * values.shape[1]
        means.append([sum(column) / max(len(rows), 1) for column in columns])
    return torch.tensor(means, dtype=values.dtype)
