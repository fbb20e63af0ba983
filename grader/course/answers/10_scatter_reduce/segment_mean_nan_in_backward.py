"""The result is right, but 0/0 in an empty segment makes the gradient nan, even if torch.where or
nan_to_num hides it afterwards: 0 times nan is nan. Divide by counts.clamp(min=1)."""
# exercise: segment_mean
# diagnosis: wrong_gradient
# not: its mean should be 0


def segment_mean(values, segment_ids, num_segments):
    members = (segment_ids[None, :] == torch.arange(num_segments)[:, None]).to(values.dtype)
    sums = members @ values
    means = sums / members.sum(1, keepdim=True)
    return torch.where(means.isnan(), torch.zeros_like(means), means)
