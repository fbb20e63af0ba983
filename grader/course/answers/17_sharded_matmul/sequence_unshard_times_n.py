"""The gradient is n times too large, as if it were added up over ranks. Every rank computes the
same loss of the same whole, so each has the whole gradient already: backward takes its own part
out of it, and sends nothing.
"""
# exercise: sequence_unshard
# diagnosis: wrong_gradient


class Scaled(Join):
    @staticmethod
    def backward(ctx, grad):
        part, *others = Join.backward(ctx, grad)
        return part * dist.get_world_size(), *others


def sequence_unshard(x_shard, full_length, dim=1):
    return Scaled.apply(x_shard, lengths(full_length), dim, side_by_side)
