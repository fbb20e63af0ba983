# exercise: sequence_shard
# diagnosis: exception
# hint: in backward, or in forward
# not: does it use dim
# Forward cuts along dimension 1, and backward joins along dim.
import torch
import torch.distributed as dist


class Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.full = dim, x.shape[dim]
        return x.tensor_split(dist.get_world_size(), 1)[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, grad):
        n = dist.get_world_size()
        lengths = [len(part) for part in torch.arange(ctx.full).tensor_split(n)]
        front = grad.movedim(ctx.dim, 0)
        padded = front.new_zeros(-(-ctx.full // n), *front.shape[1:])
        padded[: len(front)] = front
        parts = [torch.empty_like(padded) for _ in range(n)]
        dist.all_gather(parts, padded)
        whole = torch.cat([part[:k] for part, k in zip(parts, lengths)])
        return whole.movedim(0, ctx.dim), None


def sequence_shard(x, dim=1):
    return Cut.apply(x, dim)
