"""Three hundred messages in one batch.  NCCL may cut a batch of hundreds differently on its
ranks (pytorch/pytorch#174942), which is a bug of NCCL's, and no fault of the program."""

# ranks: 2
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    other = 1 - dist.get_rank()
    batch = [P2POp(dist.isend, torch.ones(1), other) for _ in range(150)]
    batch += [P2POp(dist.irecv, torch.empty(1), other) for _ in range(150)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
