"""In one pair both ranks are even, or both odd, so both do the same first, and wait for each other. Let
the lower rank of a pair send first; or start the send with isend on both sides, then receive, then
wait.
"""
# exercise: exchange
# diagnosis: deadlock
# or: FIRST = 1
import torch
import torch.distributed as dist

FIRST = 0


def exchange(x, peer):
    rank = dist.get_rank()
    if peer == rank:
        return x.clone()
    y = torch.empty_like(x)
    if rank % 2 == FIRST:
        dist.send(x, peer)
        dist.recv(y, peer)
    else:
        dist.recv(y, peer)
        dist.send(x, peer)
    return y
