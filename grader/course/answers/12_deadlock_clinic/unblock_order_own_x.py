"""Each rank adds its own x to the maximum. It should be rank 0's: broadcast a copy."""
# exercise: unblock_order
# diagnosis: wrong_value
# No second collective, no wrong order; and no x of rank 0.
import torch.distributed as dist


def unblock_order(x):
    biggest = x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    return biggest + x
