# exercise: unblock_order
# diagnosis: exception
# hint: torch.iinfo
import torch
import torch.distributed as dist


def unblock_order(x):
    if dist.get_rank() == 0:
        base = x
    else:
        base = torch.full_like(x, float("-inf"))
    both = torch.cat([x.flatten(), base.flatten()])
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    m, b = both.chunk(2)
    return (m + b).view_as(x)
