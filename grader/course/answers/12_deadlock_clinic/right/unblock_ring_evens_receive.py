# exercise: unblock_ring
# diagnosis: none
# Even ranks receive first, by a branch in a helper.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = x.clone()

    def receive():
        dist.recv(y, src=(rank + n - 1) % n)

    if n > 1 and rank % 2 == 0:
        receive()
    if n > 1:
        dist.send(x, dst=(rank + 1) % n)
    if rank % 2:
        receive()
    return y
