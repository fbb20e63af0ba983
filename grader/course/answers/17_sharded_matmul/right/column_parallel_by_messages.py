# exercise: column_parallel
# diagnosis: none
import torch
import torch.distributed as dist


def everyones(tensor, shapes):
    """Everyone's tensor, sent one by one: shapes may differ."""
    n, rank = dist.get_world_size(), dist.get_rank()
    tensor = tensor.contiguous()
    parts = [tensor if r == rank else tensor.new_empty(shape) for r, shape in enumerate(shapes)]
    requests = []
    for other in range(n):
        if other != rank:
            requests.append(dist.isend(tensor, other))
            requests.append(dist.irecv(parts[other], other))
    for request in requests:
        request.wait()
    return parts


class ColumnParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x @ w
        widths = [
            int(t) for t in everyones(torch.tensor([w.shape[1]]), [1] * dist.get_world_size())
        ]
        ctx.widths = widths
        return torch.cat(everyones(y, [(*y.shape[:-1], width) for width in widths]), -1)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        mine = grad.split(ctx.widths, -1)[dist.get_rank()]
        with torch.enable_grad():
            a, b = x.detach().requires_grad_(), w.detach().requires_grad_()
            dx, dw = torch.autograd.grad(a @ b, (a, b), mine)
        dx = sum(everyones(dx, [x.shape] * dist.get_world_size()))
        return dx, dw


def column_parallel(x, weight_shard):
    return ColumnParallel.apply(x, weight_shard)
