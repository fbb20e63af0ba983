# exercise: row_parallel
# diagnosis: none
import torch
import torch.distributed as dist


class RowParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = (x @ w).contiguous()
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        return y

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.T, torch.einsum("ki,ko->io", x.flatten(0, -2), grad.flatten(0, -2))


def row_parallel(x_shard, weight_shard):
    return RowParallel.apply(x_shard, weight_shard)
