# exercise: row_parallel
# diagnosis: wrong_shape
# hint: may have three of them
# not: summed over
import torch
import torch.distributed as dist


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


def row_parallel(x_shard, weight_shard):
    return Sum.apply(x_shard.flatten(0, -2) @ weight_shard)
