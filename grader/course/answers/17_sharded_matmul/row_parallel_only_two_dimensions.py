# exercise: row_parallel
# diagnosis: exception
# hint: take matrices only
# not: empty shard | does not divide
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
    return Sum.apply(torch.mm(x_shard, weight_shard))
