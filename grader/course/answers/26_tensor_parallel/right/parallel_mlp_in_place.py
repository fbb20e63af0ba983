# exercise: parallel_mlp
# diagnosis: none
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


def parallel_mlp(x, w_in_shard, w_out_shard):
    y = torch.nn.GELU()(Share.apply(x) @ w_in_shard) @ w_out_shard
    # autograd does not see this, and takes y for the plain product: its gradient is right
    dist.all_reduce(y)
    return y
