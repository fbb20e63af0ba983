"""A pipeline's blocking messages, forward and backward, and a sum at the end: what every rank does
fits into one order, so nothing is to be said, buffers or not."""

# ranks: 4
# nccl: ends

import torch
import torch.distributed as dist


def program():
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    x = torch.ones(8)
    for _ in range(3):
        if rank > 0:
            dist.recv(x, rank - 1)
        if rank < last:
            dist.send(x, rank + 1)
    for _ in range(3):
        if rank < last:
            dist.recv(x, rank + 1)
        if rank > 0:
            dist.send(x, rank - 1)
    dist.all_reduce(x)
    return float(x.sum())
