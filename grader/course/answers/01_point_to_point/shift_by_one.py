"""That is a shift by one, whatever k is."""
# exercise: shift
# diagnosis: wrong_value
# or: ALONE = "one rank"
import torch
import torch.distributed as dist

ALONE = "no shift"


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1 or (k % n == 0 and ALONE == "no shift"):
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    request.wait()
    return y
