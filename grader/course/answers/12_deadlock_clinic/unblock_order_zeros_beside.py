"""Rank 0's x comes back as 0, or as a number close to it, where it is negative: the other ranks put
that in its place, and MAX takes the larger. Let them put in what no x is smaller than: −inf, and
for integers torch.iinfo(x.dtype).min."""
# exercise: unblock_order
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def unblock_order(x):
    both = torch.stack([x, x if dist.get_rank() == 0 else torch.zeros_like(x)])
    dist.all_reduce(both, dist.ReduceOp.MAX)
    return both[0] + both[1]
