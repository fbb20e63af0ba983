# exercise: unblock_order
# diagnosis: none
import torch.distributed as dist


def unblock_order(x):
    biggest, first = x.clone(), x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    dist.broadcast(first, src=0)
    return biggest + first
