# exercise: unblock_order
# diagnosis: order_mismatch
# hint: the same calls in the same order
# says: rank 0 calls all_reduce (MAX)
import torch.distributed as dist


def unblock_order(x):
    biggest, first = x.clone(), x.clone()
    if dist.get_rank() % 2 == 0:
        dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
        dist.broadcast(first, src=0)
    else:
        dist.broadcast(first, src=0)
        dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    return biggest + first
