# exercise: shift
# diagnosis: wrong_value
# hint: shift by one, whatever k is
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    request.wait()
    return y
