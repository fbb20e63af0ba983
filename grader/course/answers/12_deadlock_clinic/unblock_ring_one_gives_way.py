# exercise: unblock_ring
# diagnosis: too_many_rounds
# hint: two rounds, or three
# rank 0 receives first, and the others follow one by one.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = torch.zeros_like(x)
    steps = [lambda: dist.send(x, (rank + 1) % n), lambda: dist.recv(y, (rank - 1) % n)]
    if n == 1:
        return x.clone()
    for step in reversed(steps) if rank == 0 else steps:
        step()
    return y
