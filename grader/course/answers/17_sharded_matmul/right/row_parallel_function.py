# exercise: row_parallel
# diagnosis: none
import torch
import torch.distributed as dist


class Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        y = y.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad


def row_parallel(x_shard, weight_shard):
    return Reduce.apply(torch.matmul(x_shard, weight_shard))
