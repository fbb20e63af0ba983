# exercise: tree_broadcast
# diagnosis: forbidden_call
# hint: -
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    dist.broadcast(x, src)
