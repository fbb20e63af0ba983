"""The same after a message each way between the two stages."""

# ranks: 2
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, x, gradient = dist.get_rank(), torch.ones(8), torch.empty(8)
    first = [P2POp(dist.isend, torch.ones(1), 1 - rank), P2POp(dist.irecv, torch.ones(1), 1 - rank)]
    for work in dist.batch_isend_irecv(first):
        work.wait()
    if rank == 0:
        dist.batch_isend_irecv([P2POp(dist.isend, x, 1)])[0].wait()
        works = dist.batch_isend_irecv([P2POp(dist.isend, x, 1), P2POp(dist.irecv, gradient, 1)])
    else:
        for _ in range(2):
            (work,) = dist.batch_isend_irecv([P2POp(dist.irecv, x, 0)])
            work.wait()
        works = dist.batch_isend_irecv([P2POp(dist.isend, x / x.sum().item(), 0)])
    for work in works:
        work.wait()
