# exercise: unblock_order
# diagnosis: input_changed
# hint: give each of them a copy
import torch.distributed as dist


def unblock_order(x):
    biggest = x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    dist.broadcast(x, src=0)
    return biggest + x
