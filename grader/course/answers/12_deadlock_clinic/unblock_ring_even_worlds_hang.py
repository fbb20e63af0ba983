# exercise: unblock_ring
# diagnosis: deadlock
# hint: One rank at least has to receive before it sends
# not: with fewer ranks
# Hangs with two ranks already, and works with three.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    if n % 2 and rank == 0:
        dist.recv(y, (rank - 1) % n)
        dist.send(x, (rank + 1) % n)
    else:
        dist.send(x, (rank + 1) % n)
        dist.recv(y, (rank - 1) % n)
    return y
