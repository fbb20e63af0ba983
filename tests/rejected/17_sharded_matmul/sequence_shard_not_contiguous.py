# exercise: sequence_shard
# diagnosis: exception
# hint: call .contiguous() first
import torch
import torch.distributed as dist


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.shape = dim, x.shape
        return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        rank, n = dist.get_rank(), dist.get_world_size()
        whole = grad.new_empty(ctx.shape)
        parts = whole.tensor_split(n, ctx.dim)
        parts[rank].copy_(grad)
        sends = [dist.isend(grad, other) for other in range(n) if other != rank]
        for other in range(n):
            if other != rank:
                dist.recv(parts[other], other)
        for request in sends:
            request.wait()
        return whole, None


def sequence_shard(x, dim=1):
    return Split.apply(x, dim)
