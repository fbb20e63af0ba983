# exercise: unblock_ring
# diagnosis: none
# Even ranks send first, odd ones receive first. With an odd number of ranks two even ones are
# neighbours, but one rank that receives first is enough to open the circle.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % n, (rank - 1) % n
    y = x.clone()
    if right == rank:
        return y
    if rank % 2 == 0:
        dist.send(x, right)
        dist.recv(y, left)
    else:
        dist.recv(y, left)
        dist.send(x, right)
    return y
