"""Twice the maximum, and rank 0's x is missing. Does the broadcast work on a copy of x that no
all-reduce has written into, and is that copy in your sum?"""
# exercise: unblock_order
# diagnosis: wrong_value
# not: Twice rank 0's x
import torch.distributed as dist


def unblock_order(x):
    biggest = x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    first = biggest
    dist.broadcast(first, src=0)
    return biggest + first
