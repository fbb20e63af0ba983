"""Flipping a bit of the rank (rank ^ step) pairs all ranks only if n is a power of two. A partner
at (rank + step) % n exists for every n."""
# exercise: barrier
# diagnosis: exception

import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        request = dist.isend(torch.zeros(1), rank ^ step)
        dist.recv(torch.zeros(1), rank ^ step)
        request.wait()
        step *= 2
