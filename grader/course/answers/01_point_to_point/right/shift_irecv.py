# exercise: shift
# diagnosis: none
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    to, source = (rank + k) % n, (rank - k) % n
    out = x.clone()
    if to != rank:
        coming = dist.irecv(out, source)
        dist.send(x, to)
        coming.wait()
    return out
