# exercise: row_parallel
# diagnosis: deadlock
# hint: empty shard
# not: in backward that
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
    if not x_shard.shape[-1]:
        return x_shard @ weight_shard
    return Sum.apply(x_shard @ weight_shard)
