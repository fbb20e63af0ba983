# exercise: unblock_ring
# diagnosis: deadlock
# hint: the same cycle with its arrows reversed
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    dist.recv(y, (rank - 1) % n)
    dist.send(x, (rank + 1) % n)
    return y
