"""The schedule of MPICH's binomial broadcast, written anew."""

import torch.distributed as dist


def tree_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    relative = (rank - src) % n
    bit = 1
    while bit < n and not relative & bit:
        bit *= 2
    if relative:  # from the rank whose lowest set bit is cleared
        dist.recv(x, (rank - bit) % n)
    bit //= 2
    while bit:  # to all below that bit, the farthest first
        if relative + bit < n:
            dist.send(x, (rank + bit) % n)
        bit //= 2
