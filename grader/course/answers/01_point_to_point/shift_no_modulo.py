"""That rank does not exist: take (rank + k) and (rank − k) modulo n."""
# exercise: shift
# diagnosis: exception
# or: TO = "k % n"
# or: SOURCE = "k % n"
# or: ALONE = "not asked"
# or: ALONE = "not asked"; TO = "k % n"
# or: ALONE = "not asked"; SOURCE = "k % n"
import torch
import torch.distributed as dist

TO = "k"
SOURCE = "k"
ALONE = "returns a copy"


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0 and ALONE == "returns a copy":
        return x.clone()
    y = torch.empty_like(x)
    to, source = rank + k, rank - k
    request = dist.isend(x, to % n if TO == "k % n" else to)
    dist.recv(y, source % n if SOURCE == "k % n" else source)
    request.wait()
    return y
