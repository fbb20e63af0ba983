# exercise: unblock_order
# diagnosis: wrong_value
# hint: the maximum is missing
# not: works on what
# The result of the all-reduce is thrown away.
import torch.distributed as dist


def unblock_order(x):
    biggest, first = x.clone(), x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    dist.broadcast(first, src=0)
    return first + first
