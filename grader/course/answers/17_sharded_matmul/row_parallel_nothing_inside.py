# exercise: row_parallel
# diagnosis: deadlock
# hint: empty shard
# not: in backward that | Forward alone works
# Where no rank has anything, no gradient comes back, and nobody waits.
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
    if x_shard.shape[-1] == 0:
        return x_shard.new_zeros(*x_shard.shape[:-1], weight_shard.shape[1])
    return Sum.apply(x_shard @ weight_shard)
