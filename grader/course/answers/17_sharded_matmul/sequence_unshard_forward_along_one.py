# exercise: sequence_unshard
# diagnosis: exception
# hint: fails in forward where it is another
# not: keep it
import torch
import torch.distributed as dist


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, total, dim):
        n, rank = dist.get_world_size(), dist.get_rank()
        lengths = [len(one) for one in torch.arange(total).tensor_split(n)]
        ctx.dim, ctx.begin, ctx.length = dim, sum(lengths[:rank]), lengths[rank]
        shape = list(part.shape)
        shape[1] = lengths[0]
        padded = part.new_zeros(shape)
        padded[:, : lengths[rank]] = part
        parts = [torch.empty_like(padded) for _ in range(n)]
        dist.all_gather(parts, padded)
        return torch.cat([one.narrow(1, 0, k) for one, k in zip(parts, lengths)], 1)

    @staticmethod
    def backward(ctx, grad):
        return grad.narrow(ctx.dim, ctx.begin, ctx.length), None, None


def sequence_unshard(x_shard, full_length, dim=1):
    return Whole.apply(x_shard, full_length, dim)
