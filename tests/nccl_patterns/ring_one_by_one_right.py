"""The same in one batch: NCCL sees to it that the messages of a group do not wait in a circle."""

# ranks: 3
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, size = dist.get_rank(), dist.get_world_size()
    batch = [
        P2POp(dist.isend, torch.ones(8), (rank + 1) % size),
        P2POp(dist.irecv, torch.empty(8), (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
