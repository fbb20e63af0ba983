# exercise: tree_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    # the far half first: a rank receives where its lowest bit is, and sends below it
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    mask = 1
    while mask < n and not v & mask:
        mask *= 2
    if v:
        dist.recv(x, (v - mask + src) % n)
    while mask > 1:
        mask //= 2
        if v + mask < n:
            dist.send(x, (v + mask + src) % n)
