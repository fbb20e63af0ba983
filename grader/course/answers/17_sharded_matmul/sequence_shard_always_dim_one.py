"""The tensor is cut along another dimension than dim. Only dim is cut, and it is not always 1."""
# exercise: sequence_shard
# diagnosis: wrong_shape


def sequence_shard(x, dim=1):
    return Split.apply(x, 1)
