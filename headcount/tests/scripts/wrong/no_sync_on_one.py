# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""One rank keeps its gradients to itself."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4))
for step in range(4):
    lazy = rank == 1 and step == 2
    with model.no_sync() if lazy else contextlib.nullcontext():
        model(torch.ones(2, 4)).sum().backward()  # here
dist.barrier()
