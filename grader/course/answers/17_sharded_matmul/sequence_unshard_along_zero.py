"""Dimension dim has been moved to the front, where the parts are put together, and has stayed
there: move it back.
"""
# exercise: sequence_unshard
# diagnosis: wrong_shape
# not: if no other is given


def sequence_unshard(x_shard, full_length, dim=1):
    return join(x_shard.movedim(dim, 0), lengths(full_length), 0)
