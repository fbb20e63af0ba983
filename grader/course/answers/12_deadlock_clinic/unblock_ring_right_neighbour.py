# exercise: unblock_ring
# diagnosis: deadlock
# hint: waits for a message from its right neighbour
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    r = dist.isend(x, (rank + 1) % n)
    dist.recv(y, (rank + 1) % n)
    r.wait()
    return y
