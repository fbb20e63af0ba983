"""You return your own x: return what came from rank r − k."""
# exercise: shift
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n:
        y = torch.empty_like(x)
        request = dist.isend(x, (rank + k) % n)
        dist.recv(y, (rank - k) % n)
        request.wait()
    return x.clone()
