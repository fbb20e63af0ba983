# ranks: 2
# diagnosis: exception
# status: 1
"""A batch of another shape raises on one rank."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4))
for step in range(3):
    width = 5 if rank == 1 and step == 2 else 4
    model(torch.ones(2, width)).sum().backward()  # here
