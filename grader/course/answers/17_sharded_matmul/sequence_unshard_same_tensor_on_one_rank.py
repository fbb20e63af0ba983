# exercise: sequence_unshard
# diagnosis: aliased
# hint: return a copy of it
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


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, lengths, dim):
        ctx.dim = dim
        return gather(part, lengths, dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.tensor_split(dist.get_world_size(), ctx.dim)[dist.get_rank()], None, None


def sequence_unshard(x_shard, full_length, dim=1):
    if dist.get_world_size() == 1:
        return x_shard
    return Join.apply(x_shard, lengths(full_length), dim)
