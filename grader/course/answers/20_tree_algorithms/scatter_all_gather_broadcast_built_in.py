# exercise: scatter_all_gather_broadcast
# diagnosis: forbidden_call
# hint: -
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    dist.broadcast(x, src)
