"""The gradient of x is divided by n. Every rank contributes another part of it: these are added
up, and not averaged.
"""
# exercise: column_parallel
# diagnosis: wrong_gradient


class Averaged(Share):
    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad / dist.get_world_size()


def column_parallel(x, weight_shard):
    y = Averaged.apply(x) @ weight_shard
    return join(y, widths_of(weight_shard), y.dim() - 1)
