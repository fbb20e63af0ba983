# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""Rank 0 adds up the loss for its log."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
loss = torch.ones(1)
for _step in range(2):
    if rank == 0:
        dist.reduce(loss, 0)  # here
    dist.all_reduce(loss)
