"""Rank 0's x comes back as the largest number that there is: the other ranks put that in its place, and
MAX takes it. Let them put in what no x is smaller than: −inf, and for integers
torch.iinfo(x.dtype).min.
"""
# exercise: unblock_order
# diagnosis: wrong_value
# or: FLOATS = "finfo"
import torch
import torch.distributed as dist

FLOATS = "inf"


def unblock_order(x):
    if not x.is_floating_point():
        most = torch.iinfo(x.dtype).max
    else:
        most = torch.inf if FLOATS == "inf" else torch.finfo(x.dtype).max
    both = torch.stack([x, x if dist.get_rank() == 0 else torch.full_like(x, most)])
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return both[0] + both[1]
