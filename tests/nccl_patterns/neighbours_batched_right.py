"""The same order on all ranks, but in one batch: its parts progress independently."""

# ranks: 4
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, size = dist.get_rank(), dist.get_world_size()
    batch = []
    for peer in (rank - 1, rank + 1):
        if 0 <= peer < size:
            batch.append(P2POp(dist.isend, torch.ones(8), peer))
            batch.append(P2POp(dist.irecv, torch.empty(8), peer))
    for work in dist.batch_isend_irecv(batch):
        work.wait()
