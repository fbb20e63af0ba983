# exercise: shift
# diagnosis: wrong_value
# hint: as if k were positive
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + abs(k)) % n)
    dist.recv(y, (rank - abs(k)) % n)
    request.wait()
    return y
