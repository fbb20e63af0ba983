# exercise: column_parallel
# diagnosis: none
import torch
import torch.distributed as dist


class ColumnParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        total = torch.tensor(w.shape[1])
        dist.all_reduce(total)
        own = torch.arange(int(total)).tensor_split(dist.get_world_size())[dist.get_rank()]
        ctx.own = own
        # whole columns as rows: all ranks add into a matrix of zeros
        y = x.new_zeros(*x.shape[:-1], int(total))
        y[..., own] = x @ w
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        own = grad[..., ctx.own]
        dx = dw = None
        if ctx.needs_input_grad[0]:
            dx = (own @ w.t()).contiguous()
            dist.all_reduce(dx)
        if ctx.needs_input_grad[1]:
            dw = x.flatten(0, -2).t() @ own.flatten(0, -2)
        return dx, dw


column_parallel = ColumnParallel.apply
