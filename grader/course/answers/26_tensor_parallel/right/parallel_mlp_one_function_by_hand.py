# exercise: parallel_mlp
# diagnosis: none
import math

import torch
import torch.distributed as dist


class Layer(torch.autograd.Function):
    """The whole layer, with GELU and its slope written out."""

    @staticmethod
    def forward(ctx, x, a, b):
        h = x @ a
        below = 0.5 * (1 + torch.erf(h / math.sqrt(2)))
        ctx.save_for_backward(x, a, b, h, below)
        y = (h * below) @ b
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, a, b, h, below = ctx.saved_tensors
        rows = grad.flatten(0, -2)
        slope = below + h * torch.exp(-h * h / 2) / math.sqrt(2 * math.pi)
        dh = (grad @ b.T) * slope
        dx = dh @ a.T
        dist.all_reduce(dx)
        da = x.flatten(0, -2).T @ dh.flatten(0, -2)
        db = (h * below).flatten(0, -2).T @ rows
        return dx, da, db


def parallel_mlp(x, w_in_shard, w_out_shard):
    return Layer.apply(x, w_in_shard, w_out_shard)
