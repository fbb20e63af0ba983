"""Twice the maximum: every rank puts its own x into the second row, and MAX takes the largest of
them. On all ranks but 0 put in what no x is smaller than: −inf, and for integers
torch.iinfo(x.dtype).min.
"""
# exercise: unblock_order
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def unblock_order(x):
    both = torch.stack([x, x])
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return both[0] + both[1]
