"""Both ends are in a batch."""

# ranks: 2
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    dist.barrier()
    move = dist.irecv if dist.get_rank() else dist.isend
    dist.batch_isend_irecv([P2POp(move, torch.ones(8), 1 - dist.get_rank())])[0].wait()
