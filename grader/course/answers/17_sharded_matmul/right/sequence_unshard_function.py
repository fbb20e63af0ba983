# exercise: sequence_unshard
# diagnosis: none
import torch
import torch.distributed as dist


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, length, dim):
        ctx.dim = dim
        n = dist.get_world_size()
        shape = list(part.shape)
        shape[dim] = -(-length // n)
        padded = part.new_zeros(shape)
        padded.narrow(dim, 0, part.shape[dim]).copy_(part)
        parts = [torch.empty_like(padded) for _ in range(n)]
        dist.all_gather(parts, padded)
        lengths = [len(t) for t in torch.arange(length).tensor_split(n)]
        return torch.cat([p.narrow(dim, 0, k) for p, k in zip(parts, lengths, strict=True)], dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.tensor_split(dist.get_world_size(), ctx.dim)[dist.get_rank()], None, None


def sequence_unshard(x_shard, full_length, dim=1):
    return Gather.apply(x_shard, full_length, dim)
