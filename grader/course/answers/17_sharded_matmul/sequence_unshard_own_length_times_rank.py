"""In backward, a part does not always begin at rank · its own length: where n does not divide the
length, the first ranks have one more. grad.tensor_split(n, dim)[rank] is this rank's part.
"""
# exercise: sequence_unshard
# diagnosis: wrong_gradient
import torch
import torch.distributed as dist
from torch.autograd import Function


class Whole(Function):
    @staticmethod
    def forward(ctx, part, lengths, dim):
        ctx.dim, ctx.own = dim, part.shape[dim]
        return gather(part.detach(), lengths, dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.narrow(ctx.dim, dist.get_rank() * ctx.own, ctx.own), None, None


def sequence_unshard(x_shard, full_length, dim=1):
    return Whole.apply(x_shard, lengths(full_length), dim)
