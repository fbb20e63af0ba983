"""All ranks receive before any of them sends, so nothing ever comes. Start the send with isend,
then receive, and wait for the send at the end.
"""
# exercise: exchange, shift
# diagnosis: deadlock
import torch
import torch.distributed as dist


def exchange(x, peer):
    if peer == dist.get_rank():
        return x.clone()
    y = torch.empty_like(x)
    dist.recv(y, peer)
    dist.send(x, peer)
    return y


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    dist.recv(y, (rank - k) % n)
    dist.send(x, (rank + k) % n)
    return y
