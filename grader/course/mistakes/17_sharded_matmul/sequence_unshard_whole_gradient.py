"""backward returns the gradient of the whole, and autograd has added it up to fit the shape of
x_shard. Only the rank's own part of it belongs to x_shard.
"""
# exercise: sequence_unshard
# diagnosis: wrong_gradient


class Whole(Join):
    @staticmethod
    def backward(ctx, grad):
        return grad, None, None, None


def sequence_unshard(x_shard, full_length, dim=1):
    return Whole.apply(x_shard, lengths(full_length), dim, side_by_side)
