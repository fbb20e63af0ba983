# exercise: unblock_order
# diagnosis: wrong_value
# hint: a larger number comes back
# or: FILL, OF_INTEGERS = -1e30, -(2**62)
import torch
import torch.distributed as dist

FILL, OF_INTEGERS = -1e9, -(10**9)


def unblock_order(x):
    lowest = FILL if x.is_floating_point() else OF_INTEGERS
    second = x if dist.get_rank() == 0 else torch.full_like(x, lowest)
    both = torch.stack([x, second])
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return both[0] + both[1]
