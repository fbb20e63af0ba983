# exercise: unblock_order
# diagnosis: wrong_value
# hint: all_reduce sums unless you say
import torch.distributed as dist


def unblock_order(x):
    total, first = x.clone(), x.clone()
    dist.all_reduce(total)
    dist.broadcast(first, src=0)
    return total + first
