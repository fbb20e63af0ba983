# exercise: unblock_ring
# diagnosis: exception
# hint: (rank − 1) % n
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    if rank % 2 == 0:
        dist.send(x, rank + 1)
        dist.recv(y, rank - 1)
    else:
        dist.recv(y, rank - 1)
        dist.send(x, rank + 1)
    return y
