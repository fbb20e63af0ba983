"""When k % n is 0 the other rank is yourself, and a rank cannot send to itself: return a copy
then.
"""
# exercise: shift
# diagnosis: exception
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + k) % n)
    dist.recv(y, (rank - k) % n)
    request.wait()
    return y
