# exercise: parallel_mlp
# diagnosis: too_many_messages
# hint: more than one all-reduce in backward
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
        return added_up(added_up(grad) / dist.get_world_size())


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
