"""A rank sends to one side and waits for the same side, but what is meant for it comes from the
other: send to (rank + k) % n and receive from (rank − k) % n.
"""
# exercise: shift
# diagnosis: deadlock
# alike: messages
# or: SIDE = -1
import torch
import torch.distributed as dist

SIDE = 1


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + SIDE * k) % n)
    dist.recv(y, (rank + SIDE * k) % n)
    request.wait()
    return y
