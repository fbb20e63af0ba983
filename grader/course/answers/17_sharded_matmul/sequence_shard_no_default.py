# exercise: sequence_shard
# diagnosis: exception
# hint: can be left out, and is 1 then
import torch
import torch.distributed as dist


def lengths(total):
    return [len(part) for part in torch.arange(total).tensor_split(dist.get_world_size())]


def gather(part, lengths, dim):
    shape = list(part.shape)
    shape[dim] = max(lengths)
    padded = part.new_zeros(shape)
    padded.narrow(dim, 0, part.shape[dim]).copy_(part)
    parts = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(parts, padded)
    return torch.cat([p.narrow(dim, 0, k) for p, k in zip(parts, lengths, strict=True)], dim)


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.length = dim, x.shape[dim]
        return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        return gather(grad, lengths(ctx.length), ctx.dim), None


def sequence_shard(x, dim):
    return Split.apply(x, dim)
