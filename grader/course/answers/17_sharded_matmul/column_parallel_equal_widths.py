# exercise: column_parallel
# diagnosis: exception
# hint: pieces of one size
import torch
import torch.distributed as dist


class Share(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


def column_parallel(x, weight_shard):
    y = Share.apply(x) @ weight_shard
    widths = [torch.tensor(0) for _ in range(dist.get_world_size())]
    dist.all_gather(widths, torch.tensor(weight_shard.shape[1]))
    parts = [y.new_empty(*y.shape[:-1], int(width)) for width in widths]
    dist.all_gather(parts, y.detach())
    parts[dist.get_rank()] = y
    return torch.cat(parts, -1)
