"""One end of a message is in a batch, and the other is not, so that they are on different
communicators."""

# ranks: 2
# nccl: deadlock
# says: a batch runs on its group's, a message outside of one on that of its two ranks

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    dist.barrier()
    if dist.get_rank() == 0:
        dist.batch_isend_irecv([P2POp(dist.isend, torch.ones(8), 1)])[0].wait()
    else:
        dist.recv(torch.empty(8), 0)  # named
