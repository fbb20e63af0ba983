# exercise: row_parallel
# diagnosis: wrong_gradient
# hint: not a share of it
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
        return grad / dist.get_world_size()


def row_parallel(x_shard, weight_shard):
    return Sum.apply(x_shard @ weight_shard)
