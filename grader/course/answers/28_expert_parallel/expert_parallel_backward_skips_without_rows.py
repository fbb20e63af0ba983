# exercise: expert_parallel
# diagnosis: deadlock
# hint: makes its call for no rows as well
import torch
import torch.distributed as dist


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sends, receives):
        ctx.counts = sends, receives
        out = rows.new_empty(sum(receives), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), receives, sends)
        return out

    @staticmethod
    def backward(ctx, grad):
        sends, receives = ctx.counts
        out = grad.new_empty(sum(sends), *grad.shape[1:])
        if not len(grad):
            return out, None, None
        dist.all_to_all_single(out, grad.contiguous(), sends, receives)
        return out, None, None


def expert_parallel(x, expert, experts):
    n, number = dist.get_world_size(), len(experts)
    kept = (expert >= 0).nonzero().flatten()
    order = kept[expert[kept].argsort(stable=True)]
    counts = expert[kept].bincount(minlength=n * number)
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    sends = counts.view(n, -1).sum(1).tolist()
    receives = arriving.view(n, -1).sum(1).tolist()
    arrived = AllToAll.apply(x[order], sends, receives)
    local = torch.arange(number).repeat(n).repeat_interleave(arriving)
    worked = arrived * 0
    for e in local.unique().tolist():
        worked[local == e] = experts[e](arrived[local == e])
    result = torch.zeros_like(x)
    result[order] = AllToAll.apply(worked, receives, sends)
    return result
