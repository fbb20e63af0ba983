# exercise: unblock_order
# diagnosis: deadlock
# hint: Does every rank make both calls
# Rank 0 has its own x already, and so leaves the broadcast out.
import torch.distributed as dist


def unblock_order(x):
    biggest, first = x.clone(), x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    if dist.get_rank() != 0:
        dist.broadcast(first, src=0)
    return biggest + first
