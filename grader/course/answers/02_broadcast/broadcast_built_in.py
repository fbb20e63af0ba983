# exercise: broadcast
# diagnosis: forbidden_call
# hint: -
import torch.distributed as dist


def broadcast(x, src):
    dist.broadcast(x, src)
