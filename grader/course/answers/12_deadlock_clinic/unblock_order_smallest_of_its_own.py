"""Where rank 0's x is small, the smallest number of another rank's x comes back in its place: that is
what the other ranks put into the second row, and MAX takes the larger. Let them put in what no x is
smaller than: −inf, and for integers torch.iinfo(x.dtype).min.
"""
# exercise: unblock_order
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def unblock_order(x):
    both = torch.stack([x, x])
    if dist.get_rank() != 0 and x.numel():
        both[1] = x.min()
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return both[0] + both[1]
