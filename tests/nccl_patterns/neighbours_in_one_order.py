"""Stages exchange with both neighbours, message by message, and all in the same order: what
NVIDIA/Megatron-LM#5100 reports, without the batch."""

# ranks: 4
# nccl: deadlock
# says: too large for NCCL's buffers

import torch
import torch.distributed as dist


def program():
    rank, size = dist.get_rank(), dist.get_world_size()
    works = []
    for peer in (rank - 1, rank + 1):
        if 0 <= peer < size:
            works.append(dist.isend(torch.ones(8), peer))  # named
            works.append(dist.irecv(torch.empty(8), peer))
    for work in works:
        work.wait()
