"""Every rank receives first, so no rank ever comes to its sends. Put all sends and receives into
one batch, or start them all before you wait for any."""
# exercise: chain_exchange
# diagnosis: deadlock
# or: BEFORE_FIRST = False
import torch
import torch.distributed as dist

BEFORE_FIRST = True


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None
    if rank > 0 and BEFORE_FIRST:
        dist.recv(before, rank - 1)
    if rank < n - 1:
        dist.recv(after, rank + 1)
    if rank > 0 and not BEFORE_FIRST:
        dist.recv(before, rank - 1)
    if rank < n - 1:
        dist.send(forward, rank + 1)
    if rank > 0:
        dist.send(backward, rank - 1)
    return before, after
