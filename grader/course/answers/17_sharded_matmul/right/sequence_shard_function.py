# exercise: sequence_shard
# diagnosis: none
import torch
import torch.distributed as dist


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.length = dim, x.shape[dim]
        return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        n = dist.get_world_size()
        lengths = [len(t) for t in torch.arange(ctx.length).tensor_split(n)]
        shape = list(grad.shape)
        shape[ctx.dim] = max(lengths)
        padded = grad.new_zeros(shape)
        padded.narrow(ctx.dim, 0, grad.shape[ctx.dim]).copy_(grad)
        parts = [torch.empty_like(padded) for _ in range(n)]
        dist.all_gather(parts, padded)
        parts = [p.narrow(ctx.dim, 0, k) for p, k in zip(parts, lengths, strict=True)]
        return torch.cat(parts, ctx.dim), None


def sequence_shard(x, dim=1):
    return Split.apply(x, dim)
