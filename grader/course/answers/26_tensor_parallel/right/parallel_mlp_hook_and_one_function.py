# exercise: parallel_mlp
# diagnosis: none
import torch
import torch.distributed as dist
from torch.nn import functional as F


def summed(grad):
    whole = grad.contiguous().clone()
    dist.all_reduce(whole)
    return whole


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        part = part.clone()
        dist.all_reduce(part, op=dist.ReduceOp.SUM)
        return part

    @staticmethod
    def backward(ctx, grad):
        return grad


def parallel_mlp(x, w_in_shard, w_out_shard):
    if x.requires_grad:
        x = x.view_as(x)
        x.register_hook(summed)
    return Sum.apply(torch.matmul(F.gelu(torch.matmul(x, w_in_shard)), w_out_shard))
