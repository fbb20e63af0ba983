# exercise: unblock_order
# diagnosis: too_many_messages
# hint: as long as there are two calls
# earns: 0.5
import torch.distributed as dist


def unblock_order(x):
    biggest, first = x.clone(), x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    dist.broadcast(first, src=0)
    return biggest + first
