"""When k % n is 0 the other rank is yourself, and a rank cannot send to itself: return a copy
then.
"""
# exercise: shift
# diagnosis: exception
# or: COPIES = {"k == 0"}
# or: COPIES = {"n == 1"}
# or: COPIES = {"k == 0", "n == 1"}
import torch
import torch.distributed as dist

COPIES = {}


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if (k == 0 and "k == 0" in COPIES) or (n == 1 and "n == 1" in COPIES):
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + k) % n)
    dist.recv(y, (rank - k) % n)
    request.wait()
    return y
