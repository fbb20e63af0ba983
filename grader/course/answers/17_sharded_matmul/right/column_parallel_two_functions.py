# exercise: column_parallel
# diagnosis: none
import torch
import torch.distributed as dist


class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad


class GatherColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        n, rank = dist.get_world_size(), dist.get_rank()
        widths = [torch.zeros(1, dtype=torch.int64) for _ in range(n)]
        dist.all_gather(widths, torch.tensor([y.shape[-1]]))
        widths = [int(w) for w in widths]
        ctx.start, ctx.width = sum(widths[:rank]), widths[rank]
        padded = y.new_zeros(*y.shape[:-1], max(widths))
        padded[..., : y.shape[-1]] = y
        parts = [torch.empty_like(padded) for _ in range(n)]
        dist.all_gather(parts, padded)
        return torch.cat([p[..., :w] for p, w in zip(parts, widths, strict=True)], -1)

    @staticmethod
    def backward(ctx, grad):
        return grad[..., ctx.start : ctx.start + ctx.width]


def column_parallel(x, weight_shard):
    return GatherColumns.apply(CopyToRanks.apply(x) @ weight_shard)
