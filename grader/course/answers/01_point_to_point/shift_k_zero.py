# exercise: shift
# diagnosis: exception
# hint: When k % n is 0
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k == 0:
        return x.clone()
    out = torch.empty_like(x)
    req = dist.isend(x, (rank + k) % n)
    dist.recv(out, (rank - k) % n)
    req.wait()
    return out
