# exercise: broadcast
# diagnosis: forbidden_call
import torch.distributed as dist


def broadcast(x, src):
    group = dist.new_group(backend="gloo")
    dist.broadcast(x, src, group=group)
