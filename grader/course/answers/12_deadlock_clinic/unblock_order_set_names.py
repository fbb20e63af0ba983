# exercise: unblock_order
# diagnosis: order_mismatch
# hint: the same hash seed
# The same with other names
import torch.distributed as dist


def unblock_order(x):
    m, z = x.clone(), x.clone()
    do = {
        "all_reduce": lambda: dist.all_reduce(m, op=dist.ReduceOp.MAX),
        "broadcast": lambda: dist.broadcast(z, 0),
    }
    for name in {"all_reduce", "broadcast"}:
        do[name]()
    return m + z
