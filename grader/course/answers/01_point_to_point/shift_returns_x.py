# exercise: shift
# diagnosis: aliased
# hint: x.clone()
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + k) % n)
    dist.recv(y, (rank - k) % n)
    request.wait()
    return y
