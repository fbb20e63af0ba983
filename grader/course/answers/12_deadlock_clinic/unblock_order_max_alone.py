"""That is the maximum alone: add rank 0's x."""
# exercise: unblock_order
# diagnosis: wrong_value
import torch.distributed as dist


def unblock_order(x):
    biggest = x.clone()
    dist.all_reduce(biggest, op=dist.ReduceOp.MAX)
    return biggest
