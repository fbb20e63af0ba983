"""That rank does not exist: k may be negative, and then it is rank + k that falls below 0, and rank − k
that comes to n or more. (rank + k) % n is a rank for every k, and so is (rank - k) % n."""
# exercise: shift
# diagnosis: exception
# or: ALONE = "to"
# or: ALONE = "not asked"
import torch
import torch.distributed as dist

ALONE = "k % n"


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    to, source = rank + k, rank - k
    if to >= n:
        to -= n
    if source < 0:
        source += n
    if (ALONE == "to" and to == rank) or (ALONE == "k % n" and k % n == 0):
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, to)
    dist.recv(y, source)
    request.wait()
    return y
