# exercise: all_gather
# diagnosis: none
# Bruck: the number of known pieces doubles every round, for any number of ranks.
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    known = torch.empty((n, *x.shape), dtype=x.dtype)  # from rank on: rank, rank + 1, ...
    known[0] = x
    have = 1
    while have < n:
        count = min(have, n - have)
        request = dist.isend(known[:count], (rank - have) % n)
        came = torch.empty_like(known[:count])
        dist.recv(came, (rank + have) % n)
        request.wait()
        known[have : have + count] = came
        have += count
    return tuple(known.roll(rank, 0))
