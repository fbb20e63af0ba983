# exercise: parallel_mlp
# diagnosis: too_many_bytes
# hint: More goes out than
import torch
import torch.distributed as dist


def added_up(x):
    total = x.clone(memory_format=torch.contiguous_format)
    rank, n = dist.get_rank(), dist.get_world_size()
    own = total.clone()
    for shift in range(1, n):
        came = torch.empty_like(own)
        request = dist.isend(own, (rank + shift) % n)
        dist.recv(came, (rank - shift) % n)
        request.wait()
        total += came
    return total


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad)


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return added_up(part)

    @staticmethod
    def backward(ctx, grad):
        return grad


def parallel_mlp(x, w_in_shard, w_out_shard):
    hidden = torch.nn.functional.gelu(Enter.apply(x) @ w_in_shard)
    return Leave.apply(hidden @ w_out_shard)
