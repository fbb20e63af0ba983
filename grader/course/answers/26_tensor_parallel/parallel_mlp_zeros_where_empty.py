# exercise: parallel_mlp
# diagnosis: deadlock
# hint: empty shard
# not: Forward works
# Where no rank has anything, no gradient comes back, and nobody waits.
import torch
import torch.distributed as dist


def added_up(x):
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
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
    if w_in_shard.shape[1] == 0:
        return x.new_zeros(*x.shape[:-1], w_out_shard.shape[1])
    hidden = torch.nn.functional.gelu(Enter.apply(x) @ w_in_shard)
    return Leave.apply(hidden @ w_out_shard)
