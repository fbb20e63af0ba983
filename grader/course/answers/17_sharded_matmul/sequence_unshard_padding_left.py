"""There is padding in the result: it has more than full_length positions. Cut every part to its
own length, as tensor_split makes them.
"""
# exercise: sequence_unshard
# diagnosis: wrong_shape


def arrange(parts, lengths, dim):
    return torch.cat(parts, dim)


def sequence_unshard(x_shard, full_length, dim=1):
    return join(x_shard, lengths(full_length), dim, arrange)
