# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""Rank 0 evaluates with the wrapped model, whose buffers are broadcast."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)))
for _epoch in range(2):
    model(torch.randn(4, 4)).sum().backward()
    if rank == 0:
        model(torch.randn(4, 4))
    dist.barrier()  # here
