"""A receive takes the message of any rank."""

# ranks: 2
# nccl: exception
# says: receives from any rank, which NCCL cannot

import torch
import torch.distributed as dist


def program():
    if dist.get_rank() == 0:
        dist.send(torch.ones(1), 1)
    else:
        dist.recv(torch.ones(1))  # named
