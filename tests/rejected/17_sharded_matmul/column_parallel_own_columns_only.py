# exercise: column_parallel
# diagnosis: wrong_shape
# hint: and no others
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
