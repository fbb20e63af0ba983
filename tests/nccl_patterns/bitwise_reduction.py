"""Flags are combined bit by bit."""

# ranks: 2
# nccl: exception
# says: reduces with BOR, which NCCL does not have

import torch
import torch.distributed as dist


def program():
    dist.all_reduce(torch.ones(1).int(), op=dist.ReduceOp.BOR)  # named
