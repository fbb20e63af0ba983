# exercise: expert_parallel
# diagnosis: deadlock
# hint: zeros into which nothing is put
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
        dist.all_to_all_single(out, grad.contiguous(), sends, receives)
        return out, None, None


def expert_parallel(x, expert, experts):
    n = dist.get_world_size()
    kept = (expert >= 0).nonzero().flatten()
    order = kept[expert[kept].argsort(stable=True)]
    counts = expert[kept].bincount(minlength=n * len(experts))
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    sends = counts.view(n, -1).sum(1).tolist()
    receives = arriving.view(n, -1).sum(1).tolist()
    arrived = AllToAll.apply(x[order], sends, receives)
    local = torch.arange(len(experts)).repeat(n).repeat_interleave(arriving)
    worked = torch.zeros_like(arrived)
    for e, network in enumerate(experts):
        at = (local == e).nonzero().flatten()
        worked = worked.index_copy(0, at, network(arrived[at]))
    back = AllToAll.apply(worked, receives, sends)
    if not len(order):
        return torch.zeros_like(x)
    return torch.zeros_like(x).index_copy(0, order, back)
