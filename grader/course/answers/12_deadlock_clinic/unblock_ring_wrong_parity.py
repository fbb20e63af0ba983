# exercise: unblock_ring
# diagnosis: deadlock
# hint: must not depend on the number of ranks
# not: wait() does
# Looks at the size of the world where it should look at the rank.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % n, (rank - 1) % n
    y = torch.empty_like(x)
    if n == 1:
        return x.clone()
    if n % 2 == 0 and rank % 2 == 1:
        dist.recv(y, left)
        dist.send(x, right)
    else:
        dist.send(x, right)
        dist.recv(y, left)
    return y
