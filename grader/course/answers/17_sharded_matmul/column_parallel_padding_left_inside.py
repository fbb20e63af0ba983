"""There is padding inside the result. Cut the padding off each piece before you put them together,
not off the end.
"""
# exercise: column_parallel
# diagnosis: wrong_value


def arrange(parts, lengths, dim):
    return torch.cat(parts, dim).narrow(dim, 0, sum(lengths))


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ weight_shard
    return join(y, widths_of(weight_shard), y.dim() - 1, arrange)
