# exercise: expert_parallel
# diagnosis: too_many_bytes
# hint: padding do not travel
import torch
import torch.distributed as dist


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, blocks):
        out = torch.empty_like(blocks)
        dist.all_to_all_single(out, blocks.contiguous())
        return out

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        dist.all_to_all_single(out, grad.contiguous())
        return out


def expert_parallel(x, expert, experts):
    """Every pair of ranks exchanges blocks that are as long as the longest."""
    n, k = dist.get_world_size(), len(experts)
    kept = (expert >= 0).nonzero().flatten()
    order = kept[expert[kept].argsort(stable=True)]
    counts = expert[kept].bincount(minlength=n * k)
    longest = counts.max().repeat(n)
    theirs = torch.empty_like(longest)
    dist.all_to_all_single(theirs, longest)
    room = int(theirs.max())
    place = torch.cat([torch.arange(int(c)) for c in counts]).long()
    at = expert[order] * room + place
    blocks = x.new_zeros(n * k * room, x.shape[1]).index_copy(0, at, x[order])
    arrived = AllToAll.apply(blocks.view(n, k, room, x.shape[1]))
    worked = torch.stack([network(arrived[:, e]) for e, network in enumerate(experts)], 1)
    back = AllToAll.apply(worked).reshape(n * k * room, x.shape[1])
    return torch.zeros_like(x).index_copy(0, order, back[at])
