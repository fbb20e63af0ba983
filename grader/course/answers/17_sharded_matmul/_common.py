"""What the mistakes of this chapter share."""
# or: STYLE = "the own part in its place"
# or: STYLE = "no history"
import torch
import torch.distributed as dist
from torch.autograd import Function

#: How what was gathered gets a gradient.
STYLE = "a backward of its own"


def lengths(total):
    return [len(part) for part in torch.arange(total).tensor_split(dist.get_world_size())]


def widths_of(weight_shard):
    total = torch.tensor(weight_shard.shape[1])
    dist.all_reduce(total)
    return lengths(int(total))


def padded(part, longest, dim):
    shape = list(part.shape)
    shape[dim] = longest - shape[dim]
    return torch.cat([part, part.new_zeros(shape)], dim)


def side_by_side(parts, lengths, dim):
    return torch.cat([p.narrow(dim, 0, k) for p, k in zip(parts, lengths)], dim)


def gather(part, lengths, dim, arrange=side_by_side):
    mine = padded(part.detach(), max(lengths), dim).contiguous()
    parts = [torch.empty_like(mine) for _ in lengths]
    dist.all_gather(parts, mine)
    if STYLE == "the own part in its place":
        parts[dist.get_rank()] = padded(part, max(lengths), dim)
    return arrange(parts, lengths, dim)


class Join(Function):
    @staticmethod
    def forward(ctx, part, lengths, dim, arrange):
        ctx.dim = dim
        return gather(part, lengths, dim, arrange)

    @staticmethod
    def backward(ctx, grad):
        n, rank = dist.get_world_size(), dist.get_rank()
        return grad.tensor_split(n, ctx.dim)[rank], None, None, None


def join(part, lengths, dim, arrange=side_by_side):
    if STYLE == "a backward of its own":
        return Join.apply(part, lengths, dim, arrange)
    return gather(part, lengths, dim, arrange)


class Share(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class Sum(Function):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


class Split(Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.length = dim, x.shape[dim]
        return x.tensor_split(dist.get_world_size(), dim)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        return gather(grad, lengths(ctx.length), ctx.dim), None
