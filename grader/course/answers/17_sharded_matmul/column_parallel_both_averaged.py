"""Both gradients are divided by n. Every rank computes the same loss, and its columns of the product
have the whole gradient, not a share of it: what ranks contribute to that of x is added up.
"""
# exercise: column_parallel
# diagnosis: wrong_gradient


class Shared(Function):
    @staticmethod
    def forward(ctx, part):
        return part.view_as(part)

    @staticmethod
    def backward(ctx, grad):
        return grad / dist.get_world_size()


def column_parallel(x, weight_shard):
    y = Shared.apply(Share.apply(x) @ weight_shard)
    return join(y, widths_of(weight_shard), y.dim() - 1)
