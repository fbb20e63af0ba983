# exercise: column_parallel
# diagnosis: forbidden_call
# hint: all_gather and all_reduce are all you need
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


class Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


def column_parallel(x, weight_shard):
    widths = widths_of(weight_shard)
    y = Share.apply(x) @ weight_shard
    parts = [y.new_empty(*y.shape[:-1], width) for width in widths]
    parts[dist.get_rank()] = y
    for src, part in enumerate(parts):
        dist.broadcast(part.detach(), src)
    return torch.cat(parts, -1)
