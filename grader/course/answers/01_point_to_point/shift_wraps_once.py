"""That rank does not exist: k may be larger than n, or smaller than −n, and then it is not enough to
take n away, or to add it, once. (rank + k) % n is a rank for every k."""
# exercise: shift
# diagnosis: exception
# or: ALONE = "k % n"
# or: ALONE = "not asked"
import torch
import torch.distributed as dist

ALONE = "to"


def once(rank, n):
    if rank >= n:
        return rank - n
    return rank + n if rank < 0 else rank


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    to, source = once(rank + k, n), once(rank - k, n)
    if (ALONE == "to" and to == rank) or (ALONE == "k % n" and k % n == 0):
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, to)
    dist.recv(y, source)
    request.wait()
    return y
