# exercise: unblock_ring
# diagnosis: exception
# hint: -
# not: alone | to itself | one rank
# The arguments of recv are exchanged.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + 1) % n)
    dist.recv((rank - 1) % n, y)
    request.wait()
    return y
