# exercise: shift
# diagnosis: exception
# hint: modulo n
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, rank + k)
    dist.recv(y, rank - k)
    request.wait()
    return y
