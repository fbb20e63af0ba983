"""That is the right neighbour's x: it has travelled to the left. Send to rank + 1, and receive
from rank − 1."""
# exercise: unblock_ring
# diagnosis: wrong_value
# alike: messages
# not: Everybody sends to rank + 1
# Rank 0 receives first, which opens the circle; but the messages go the wrong way.
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return x.clone()
    y = torch.empty_like(x)
    if rank == 0:
        dist.recv(y, (rank + 1) % n)
        dist.send(x, (rank - 1) % n)
    else:
        dist.send(x, (rank - 1) % n)
        dist.recv(y, (rank + 1) % n)
    return y
