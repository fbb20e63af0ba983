# exercise: unblock_order
# diagnosis: none
# A maximum is a minimum of the negated numbers.
import torch
import torch.distributed as dist


def unblock_order(x):
    highest = float("inf") if x.is_floating_point() else torch.iinfo(x.dtype).max
    first = -x if dist.get_rank() == 0 else torch.full_like(x, highest)
    both = torch.stack([-x, first])
    work = dist.all_reduce(both, dist.ReduceOp.MIN, async_op=True)
    work.wait()
    return -both.sum(0)
