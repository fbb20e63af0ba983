# exercise: shift
# diagnosis: unwaited_request
# hint: wait()
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    dist.isend(x, (rank + k) % n)
    dist.recv(y, (rank - k) % n)
    return y
