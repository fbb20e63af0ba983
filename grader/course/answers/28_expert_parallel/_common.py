"""Right answers in pieces, of which a mistake gives some anew."""
# or: SKIPS_IDLE = True
import torch
import torch.distributed as dist
import torch.nn.functional as F

SKIPS_IDLE = False


def place_of(experts, number):
    """How many choices have wanted the expert of each so far, in the order of the tokens."""
    wanted = F.one_hot(experts.flatten(), number)
    return wanted.cumsum(0).gather(1, experts.reshape(-1, 1)).view_as(experts)


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
        return AllToAll.apply(grad, receives, sends), None, None


def sorted_tokens(expert):
    kept = (expert >= 0).nonzero().flatten()
    return kept[expert[kept].argsort(stable=True)]


def exchanged(counts):
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    return arriving


def by_rank(counts):
    return counts.view(dist.get_world_size(), -1).sum(1).tolist()


def experts_of(arriving, number):
    """Which of a rank's experts each row that has arrived is for."""
    return torch.arange(number).repeat(dist.get_world_size()).repeat_interleave(arriving)


def worked_on(arrived, local, experts):
    worked = arrived * 0
    for e, network in enumerate(experts):
        at = (local == e).nonzero().flatten()
        if len(at) or not SKIPS_IDLE:
            worked = worked.index_copy(0, at, network(arrived[at]))
    return worked


def put_back(x, order, back):
    return torch.zeros_like(x).index_copy(0, order, back)


def expert_parallel(x, expert, experts):
    order = sorted_tokens(expert)
    counts = expert[order].bincount(minlength=dist.get_world_size() * len(experts))
    arriving = exchanged(counts)
    sends, receives = by_rank(counts), by_rank(arriving)
    arrived = AllToAll.apply(x[order], sends, receives)
    worked = worked_on(arrived, experts_of(arriving, len(experts)), experts)
    return put_back(x, order, AllToAll.apply(worked, receives, sends))
