"""A stage's outputs go to the next stage and, over a skip connection, to the one after it, each
stage batching all its sends and all its receives: pytorch/PiPPy#969."""

# ranks: 3
# nccl: deadlock
# says: if NCCL connects the ranks of a batch all at once

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank = dist.get_rank()
    x, skip = torch.full((8,), float(rank)), torch.empty(8)
    dist.all_reduce(torch.ones(1))
    if rank == 0:
        works = dist.batch_isend_irecv([P2POp(dist.isend, x, 1), P2POp(dist.isend, x, 2)])  # named
    elif rank == 1:
        works = dist.batch_isend_irecv([P2POp(dist.irecv, x, 0)])  # named
        works[0].wait()
        works = dist.batch_isend_irecv([P2POp(dist.isend, x + 1, 2)])
    else:
        receives = [P2POp(dist.irecv, skip, 0), P2POp(dist.irecv, x, 1)]
        works = dist.batch_isend_irecv(receives)  # named
    for work in works:
        work.wait()
