# exercise: unblock_order
# diagnosis: order_mismatch
# hint: the order of a set differs
import enum

import torch.distributed as dist

Call = enum.Enum("Call", ["MAX", "FIRST"])


def unblock_order(x):
    largest, first = x.clone(), x.clone()
    left = frozenset(Call)
    while left:
        call, *rest = left
        if call is Call.MAX:
            dist.all_reduce(largest, dist.ReduceOp.MAX)
        else:
            dist.broadcast(first, 0)
        left = frozenset(rest)
    return largest + first
