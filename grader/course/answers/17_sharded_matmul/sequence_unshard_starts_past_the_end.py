# exercise: sequence_unshard
# diagnosis: exception
# hint: begins where the parts before it end
import torch
import torch.distributed as dist


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, sizes, dim):
        ctx.sizes, ctx.dim = sizes, dim
        shape = list(part.shape)
        shape[dim] = max(sizes)
        mine = part.new_zeros(shape)
        mine.narrow(dim, 0, part.shape[dim]).copy_(part)
        parts = [torch.empty_like(mine) for _ in sizes]
        dist.all_gather(parts, mine)
        return torch.cat([p.narrow(dim, 0, size) for p, size in zip(parts, sizes)], dim)

    @staticmethod
    def backward(ctx, grad):
        rank, longest = dist.get_rank(), max(ctx.sizes)
        return grad.narrow(ctx.dim, rank * longest, ctx.sizes[rank]), None, None


def sequence_unshard(x_shard, full_length, dim=1):
    base, more = divmod(full_length, dist.get_world_size())
    sizes = [base + (r < more) for r in range(dist.get_world_size())]
    return Whole.apply(x_shard, sizes, dim)
