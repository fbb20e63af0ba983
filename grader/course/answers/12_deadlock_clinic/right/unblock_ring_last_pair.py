# exercise: unblock_ring
# diagnosis: none
# Odd ranks receive first, and so does the last one of an odd number.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    calls = [(dist.send, x, (rank + 1) % n), (dist.recv, y, (rank - 1) % n)]
    for call, tensor, peer in calls[:: -1 if rank % 2 or rank == n - 1 else 1]:
        call(tensor, peer)
    return y
