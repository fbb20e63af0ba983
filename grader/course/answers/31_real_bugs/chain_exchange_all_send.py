"""Every rank sends first, and a send ends only when the other side has its receive. Put all sends
and receives into one batch, or start them all before you wait for any."""
# exercise: chain_exchange
# diagnosis: deadlock
# or: FORWARD_FIRST = False
import torch
import torch.distributed as dist

FORWARD_FIRST = True


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None
    if rank < n - 1 and FORWARD_FIRST:
        dist.send(forward, rank + 1)
    if rank > 0:
        dist.send(backward, rank - 1)
    if rank < n - 1 and not FORWARD_FIRST:
        dist.send(forward, rank + 1)
    if rank > 0:
        dist.recv(before, rank - 1)
    if rank < n - 1:
        dist.recv(after, rank + 1)
    return before, after
