"""The gradient of weight_shard is divided by n. No other rank has its columns, so there is nothing to
average: it is xᵀ times the rank's own columns of the gradient.
"""
# exercise: column_parallel
# diagnosis: wrong_gradient


class Own(Function):
    @staticmethod
    def forward(ctx, weight):
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, grad):
        return grad / dist.get_world_size()


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ Own.apply(weight_shard)
    return join(y, widths_of(weight_shard), y.dim() - 1)
