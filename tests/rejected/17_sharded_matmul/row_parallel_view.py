# exercise: row_parallel
# diagnosis: exception
# hint: reshape and flatten
# not: message needs
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
    part = x_shard @ weight_shard
    flat = part.transpose(0, -1).view(-1)
    return Sum.apply(flat).view(part.transpose(0, -1).shape).transpose(0, -1)
