"""You return your own x. Nothing hangs any more, but the work has to be done all the same: return
the x of rank − 1."""
# exercise: unblock_ring
# diagnosis: wrong_value
# not: right neighbour
import torch.distributed as dist


def unblock_ring(x):
    return x.clone()
