# exercise: unblock_order
# diagnosis: wrong_value
# hint: Twice the maximum, and rank 0's x is missing
# not: Twice rank 0's x
import torch.distributed as dist


def unblock_order(x):
    biggest = x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    first = biggest
    dist.broadcast(first, src=0)
    return biggest + first
