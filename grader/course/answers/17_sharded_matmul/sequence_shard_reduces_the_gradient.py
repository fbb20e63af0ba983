# exercise: sequence_shard
# diagnosis: forbidden_call
# hint: gather them
import torch
import torch.distributed as dist


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.shape = dim, x.shape
        return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        whole = grad.new_zeros(ctx.shape)
        whole.tensor_split(dist.get_world_size(), ctx.dim)[dist.get_rank()].copy_(grad)
        dist.all_reduce(whole)
        return whole, None


def sequence_shard(x, dim=1):
    return Split.apply(x, dim)
