# exercise: all_gather
# diagnosis: deadlock
# hint: All ranks are in a send
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for r in range(n):
        if r != rank:
            dist.send(x, r)
    for r in range(n):
        if r != rank:
            dist.recv(parts[r], r)
    return parts
