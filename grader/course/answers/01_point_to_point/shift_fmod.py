"""That rank does not exist: rank + k or rank − k is below 0 here, and a remainder such as fmod keeps
the sign. Python's % does not: (rank + k) % n."""
# exercise: shift
# diagnosis: exception
import math

import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, int(math.fmod(rank + k, n)))
    dist.recv(y, int(math.fmod(rank - k, n)))
    request.wait()
    return y
