"""The gradients are divided by n. Every term of a sum has the gradient of the sum, not a share of
it.
"""
# exercise: row_parallel
# diagnosis: wrong_gradient


class Shared(Sum):
    @staticmethod
    def backward(ctx, grad):
        return grad / dist.get_world_size()


def row_parallel(x_shard, weight_shard):
    return Shared.apply(x_shard @ weight_shard)
