"""The same, with the receive begun before the collective."""

# ranks: 3
# nccl: ends

import torch
import torch.distributed as dist


def program():
    rank = dist.get_rank()
    works = []
    if rank == 0:
        works.append(dist.isend(torch.ones(8), 1))
    elif rank == 1:
        works.append(dist.irecv(torch.empty(8), 0))
    dist.all_reduce(torch.ones(1))
    for work in works:
        work.wait()
