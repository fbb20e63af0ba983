"""src sends only to the ranks after it, and those before it wait. It has to send to all the
others, on both sides.
"""
# exercise: broadcast
# diagnosis: deadlock
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(src + 1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, src)
