# exercise: column_parallel
# diagnosis: exception
# hint: flatten(0, -2) can
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


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight_shard):
        ctx.save_for_backward(x, weight_shard)
        ctx.widths = widths_of(weight_shard)
        return gather(x @ weight_shard, ctx.widths, x.dim() - 1)

    @staticmethod
    def backward(ctx, grad):
        x, weight_shard = ctx.saved_tensors
        mine = grad.split(ctx.widths, -1)[dist.get_rank()]
        to_x = mine @ weight_shard.T
        dist.all_reduce(to_x)
        rows = x.reshape(-1, x.shape[-1])
        return to_x, rows.T @ mine.reshape(-1, mine.shape[-1])


column_parallel = Product.apply
