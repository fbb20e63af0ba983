# exercise: row_parallel
# diagnosis: input_changed
# hint: stay as they are
import torch
import torch.distributed as dist


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad


def row_parallel(x_shard, weight_shard):
    x_shard.data /= 2
    return 2 * Sum.apply(x_shard @ weight_shard)
