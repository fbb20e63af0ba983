"""The same with a batch for each peer, as pytorch/PiPPy#1000 does."""

# ranks: 3
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank = dist.get_rank()
    x, skip = torch.full((8,), float(rank)), torch.empty(8)
    dist.all_reduce(torch.ones(1))
    if rank == 0:
        batches = [[P2POp(dist.isend, x, 1)], [P2POp(dist.isend, x, 2)]]
    elif rank == 1:
        batches = [[P2POp(dist.irecv, x, 0)], [P2POp(dist.isend, x, 2)]]
    else:
        batches = [[P2POp(dist.irecv, skip, 0)], [P2POp(dist.irecv, x, 1)]]
    for batch in batches:
        for work in dist.batch_isend_irecv(batch):
            work.wait()
