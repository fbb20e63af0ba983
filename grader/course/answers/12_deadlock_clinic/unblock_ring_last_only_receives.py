# exercise: unblock_ring
# diagnosis: deadlock
# hint: does it ever reach that call
# not: Still a cycle | isend
# No cycle any more, but the first rank waits for one that has returned.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    if rank < n - 1:
        dist.send(x, rank + 1)
    dist.recv(y, (rank - 1) % n)
    return y
