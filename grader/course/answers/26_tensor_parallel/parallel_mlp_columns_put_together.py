# exercise: parallel_mlp
# diagnosis: too_many_messages
# hint: more than one all-reduce in forward
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
    rank, n = dist.get_rank(), dist.get_world_size()
    part = Enter.apply(x) @ w_in_shard
    width = torch.tensor(w_in_shard.shape[1])
    dist.all_reduce(width)
    columns = torch.arange(int(width)).tensor_split(n)[rank]
    whole = part.new_zeros(*part.shape[:-1], int(width))
    whole[..., columns] = part
    hidden = torch.nn.functional.gelu(Leave.apply(whole))
    return Leave.apply(hidden[..., columns] @ w_out_shard)
