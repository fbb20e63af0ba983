# exercise: unblock_order
# diagnosis: order_mismatch
# hint: the order of a set differs
import torch.distributed as dist


def unblock_order(x):
    largest, first = x.clone(), x.clone()
    calls = {
        "max": lambda: dist.all_reduce(largest, dist.ReduceOp.MAX),
        "first": lambda: dist.broadcast(first, 0),
    }
    for name in {"max", "first"}:
        calls[name]()
    return largest + first
