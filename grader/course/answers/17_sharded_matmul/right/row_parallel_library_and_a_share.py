# exercise: row_parallel
# diagnosis: none
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnf


class Scaled(torch.autograd.Function):
    """The library's backward adds up n equal gradients: make each an n-th."""

    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad / dist.get_world_size()


def row_parallel(x_shard, weight_shard):
    return Scaled.apply(dnf.all_reduce(x_shard @ weight_shard))
