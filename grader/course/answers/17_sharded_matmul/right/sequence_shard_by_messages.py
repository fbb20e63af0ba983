# exercise: sequence_shard
# diagnosis: none
import torch
import torch.distributed as dist


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim, ctx.shape = dim, x.shape
        rank, n = dist.get_rank(), dist.get_world_size()
        size, extra = divmod(x.size(dim), n)
        start = rank * size + min(rank, extra)
        return x.narrow(dim, start, size + (rank < extra)).contiguous().clone()

    @staticmethod
    def backward(ctx, grad):
        rank, n = dist.get_rank(), dist.get_world_size()
        grad = grad.contiguous()
        # around the ring, one part after the other
        parts = [t.contiguous() for t in grad.new_empty(ctx.shape).tensor_split(n, ctx.dim)]
        parts[rank].copy_(grad)
        for step in range(n - 1):
            sent, got = (rank - step) % n, (rank - step - 1) % n
            request = dist.isend(parts[sent], (rank + 1) % n)
            dist.recv(parts[got], (rank - 1) % n)
            request.wait()
        return torch.cat(parts, ctx.dim), None


def sequence_shard(x, dim=1):
    return Split.apply(x, dim)
