"""There is padding inside the result. Cut the padding off each part before you put them together,
not off the end.
"""
# exercise: sequence_unshard
# diagnosis: wrong_value


def arrange(parts, lengths, dim):
    return torch.cat(parts, dim).narrow(dim, 0, sum(lengths))


def sequence_unshard(x_shard, full_length, dim=1):
    return join(x_shard, lengths(full_length), dim, arrange)
