# ranks: 2
# diagnosis: deadlock
# status: 3
"""The same, where DDP looks for unused parameters."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4), find_unused_parameters=True)
for _ in range(3 + rank):
    model(torch.ones(2, 4)).sum().backward()  # here
