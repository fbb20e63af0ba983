# exercise: sequence_shard
# diagnosis: exception
# hint: pieces of one size
import torch
import torch.distributed as dist


def lengths(total):
    return [len(part) for part in torch.arange(total).tensor_split(dist.get_world_size())]


def unpadded_gather(part, lengths, dim):
    parts = []
    for length in lengths:
        shape = list(part.shape)
        shape[dim] = length
        parts.append(part.new_empty(shape))
    dist.all_gather(parts, part.contiguous())
    return torch.cat(parts, dim)


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.length = dim, x.shape[dim]
        return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        return unpadded_gather(grad, lengths(ctx.length), ctx.dim), None


def sequence_shard(x, dim=1):
    return Split.apply(x, dim)
