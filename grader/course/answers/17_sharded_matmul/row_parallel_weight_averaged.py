"""The gradient of weight_shard is divided by n. No other rank has its rows, so there is nothing to
average: it is this rank's x_shardᵀ times the gradient.
"""
# exercise: row_parallel
# diagnosis: wrong_gradient


class Own(Function):
    @staticmethod
    def forward(ctx, weight):
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, grad):
        return grad / dist.get_world_size()


def row_parallel(x_shard, weight_shard):
    return Sum.apply(x_shard @ Own.apply(weight_shard))
