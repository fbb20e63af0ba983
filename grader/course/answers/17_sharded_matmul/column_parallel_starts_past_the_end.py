# exercise: column_parallel
# diagnosis: exception
# hint: begins where the parts before it end
import torch
import torch.distributed as dist


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        widths = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
        dist.all_gather(widths, torch.tensor([weight.shape[1]]))
        ctx.widest = int(max(widths))
        mine = x.new_zeros(*x.shape[:-1], ctx.widest)
        mine[..., : weight.shape[1]] = x @ weight
        parts = [torch.empty_like(mine) for _ in widths]
        dist.all_gather(parts, mine)
        return torch.cat([part[..., : int(w)] for part, w in zip(parts, widths)], -1)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        start = dist.get_rank() * ctx.widest
        grad = grad[..., start : start + weight.shape[1]]
        of_x = (grad @ weight.T).contiguous()
        dist.all_reduce(of_x)
        return of_x, x.flatten(0, -2).T @ grad.flatten(0, -2)


def column_parallel(x, weight_shard):
    return Product.apply(x, weight_shard)
