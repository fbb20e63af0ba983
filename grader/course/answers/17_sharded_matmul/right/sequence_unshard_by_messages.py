# exercise: sequence_unshard
# diagnosis: none
import torch
import torch.distributed as dist


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, length, dim):
        rank, n = dist.get_rank(), dist.get_world_size()
        shape = list(part.shape)
        parts = []
        ctx.where = None
        requests, start = [], 0
        part = part.contiguous()
        for r in range(n):
            shape[dim] = length // n + (r < length % n)
            parts.append(part if r == rank else part.new_empty(shape))
            if r == rank:
                ctx.where = dim, start, shape[dim]
            else:
                requests += [dist.isend(part, r), dist.irecv(parts[r], r)]
            start += shape[dim]
        for request in requests:
            request.wait()
        return torch.cat(parts, dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.narrow(*ctx.where).clone(), None, None


def sequence_unshard(x_shard, full_length, dim=1):
    return Join.apply(x_shard, full_length, dim)
