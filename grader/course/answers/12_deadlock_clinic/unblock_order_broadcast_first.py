# exercise: unblock_order
# diagnosis: too_many_messages
# hint: as long as there are two calls
# earns: 0.5
# The maximum of x + x0 is the maximum of x, plus x0.
import torch.distributed as dist


def unblock_order(x):
    y = x.clone()
    dist.broadcast(y, 0)
    y += x
    dist.all_reduce(y, dist.ReduceOp.MAX)
    return y
