# exercise: unblock_ring
# diagnosis: deadlock
# hint: One rank at least has to receive before it sends
# not: wait() does | with fewer ranks
# says: rank 0 waits to send to rank 1
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    dist.send(x, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    return y
