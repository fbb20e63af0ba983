# exercise: unblock_order
# diagnosis: none
# Rank 0 alone fills the second row.
import torch
import torch.distributed as dist


def unblock_order(x):
    lowest = -torch.inf if x.dtype.is_floating_point else -(2**62)
    both = torch.full((2, *x.shape), lowest, dtype=x.dtype)
    for row in range(2 if dist.get_rank() == 0 else 1):
        both[row].copy_(x)
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return torch.add(*both)
