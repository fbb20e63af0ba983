"""The padding stands in front of a part, and as much is cut off behind it: the part loses numbers, and
zeros are left. Pad and cut at the same end."""
# exercise: column_parallel, sequence_unshard
# diagnosis: wrong_value


def padded(part, longest, dim):
    shape = list(part.shape)
    shape[dim] = longest - shape[dim]
    return torch.cat([part.new_zeros(shape), part], dim)


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ weight_shard
    return join(y, widths_of(weight_shard), y.dim() - 1)


def sequence_unshard(x_shard, full_length, dim=1):
    return join(x_shard, lengths(full_length), dim)
