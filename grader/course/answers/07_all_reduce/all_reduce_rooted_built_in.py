# exercise: all_reduce_rooted
# diagnosis: forbidden_call
# hint: dist.reduce and dist.broadcast
import torch.distributed as dist


def all_reduce_rooted(x, op):
    dist.reduce(x, 0, op)
    dist.broadcast(x, 0)
