"""In backward the padding stands in front of a part of the gradient, and as much is cut off behind it:
the part loses numbers, and zeros are left. Pad and cut at the same end."""
# exercise: sequence_shard
# diagnosis: wrong_gradient


def padded(part, longest, dim):
    shape = list(part.shape)
    shape[dim] = longest - shape[dim]
    return torch.cat([part.new_zeros(shape), part], dim)


def sequence_shard(x, dim=1):
    return Split.apply(x, dim)
