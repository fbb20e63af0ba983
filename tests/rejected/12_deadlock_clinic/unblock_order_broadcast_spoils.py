# exercise: unblock_order
# diagnosis: wrong_value
# hint: Twice rank 0's x, and the maximum is missing
# not: Twice the maximum
import torch.distributed as dist


def unblock_order(x):
    x = x.clone()
    dist.broadcast(x, src=0)
    biggest = x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    return biggest + x
