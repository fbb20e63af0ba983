# exercise: broadcast
# diagnosis: forbidden_call
import torch.distributed as dist


def broadcast(x, src):
    dist.broadcast(x, src)
