"""x.max() is one number, the largest of all elements. The maximum is taken over ranks, element by
element: give all_reduce a copy of the whole x.
"""
# exercise: unblock_order
# diagnosis: wrong_value
# or: FIRST = "the maximum"
import torch.distributed as dist

FIRST = "rank 0's x"


def unblock_order(x):
    biggest, first = x.max(), x.clone()
    if FIRST == "the maximum":
        dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    dist.broadcast(first, src=0)
    if FIRST != "the maximum":
        dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    return biggest + first
