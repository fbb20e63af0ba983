# exercise: unblock_ring
# diagnosis: wrong_value
# hint: You return your own x
# not: right neighbour
import torch.distributed as dist


def unblock_ring(x):
    return x.clone()
