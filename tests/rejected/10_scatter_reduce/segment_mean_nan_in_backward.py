# exercise: segment_mean
# diagnosis: wrong_gradient
# hint: 0 times nan
# not: its mean should be 0
import torch


def segment_mean(values, segment_ids, num_segments):
    members = (segment_ids[None, :] == torch.arange(num_segments)[:, None]).to(values.dtype)
    sums = members @ values
    means = sums / members.sum(1, keepdim=True)
    return torch.where(means.isnan(), torch.zeros_like(means), means)
