# exercise: column_parallel
# diagnosis: wrong_gradient
# hint: No gradient reaches x
# not: all_gather fills
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


def widths_of(weight_shard):
    total = torch.tensor(weight_shard.shape[1])
    dist.all_reduce(total)
    return lengths(int(total))


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, lengths, dim):
        ctx.dim = dim
        return gather(part, lengths, dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.tensor_split(dist.get_world_size(), ctx.dim)[dist.get_rank()], None, None


def column_parallel(x, weight_shard):
    y = x.detach() @ weight_shard
    return Join.apply(y, widths_of(weight_shard), y.dim() - 1)
