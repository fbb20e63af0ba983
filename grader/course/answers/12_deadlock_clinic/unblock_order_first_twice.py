"""Twice rank 0's x, and the maximum is missing. Does the all-reduce work on a copy of x that no
broadcast has written into, and is that copy in your sum?"""
# exercise: unblock_order
# diagnosis: wrong_value
# not: works on what
# The result of the all-reduce is thrown away.
import torch.distributed as dist


def unblock_order(x):
    biggest, first = x.clone(), x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    dist.broadcast(first, src=0)
    return first + first
