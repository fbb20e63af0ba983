# exercise: column_parallel
# diagnosis: deadlock
# hint: same calls in the same order
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
    return Share.apply(x) @ weight_shard
