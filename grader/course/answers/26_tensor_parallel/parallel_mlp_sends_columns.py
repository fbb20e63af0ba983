"""A message needs a tensor that is contiguous in memory, and a slice, a transpose or a gradient
often is not: call .contiguous() first."""
# exercise: parallel_mlp
# diagnosis: exception
# not: reshape
import torch
import torch.distributed as dist


def ring_sum(x):
    """An all-reduce out of messages: a reduce-scatter and an all-gather around the ring."""
    rank, n = dist.get_rank(), dist.get_world_size()
    total = x.clone(memory_format=torch.contiguous_format)
    chunks = total.tensor_split(n, -1)
    for first, adds in ((rank - 1, True), (rank, False)):
        for step in range(n - 1):
            out, into = chunks[(first - step) % n], chunks[(first - step - 1) % n]
            came = torch.empty_like(into)
            request = dist.isend(out, (rank + 1) % n)
            dist.recv(came, (rank - 1) % n)
            request.wait()
            into.copy_(into + came if adds else came)
    return total


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return ring_sum(grad)


class G(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return ring_sum(part)

    @staticmethod
    def backward(ctx, grad):
        return grad


def parallel_mlp(x, w_in_shard, w_out_shard):
    return G.apply(torch.nn.functional.gelu(F.apply(x) @ w_in_shard) @ w_out_shard)
