# exercise: row_parallel
# diagnosis: deadlock
# hint: it is in backward
# not: empty
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
        if dist.get_rank() == dist.get_world_size() - 1:
            grad = grad.clone()
            dist.all_reduce(grad)
        return grad


def row_parallel(x_shard, weight_shard):
    return Sum.apply(x_shard @ weight_shard)
