# ranks: 2
# diagnosis: deadlock
# status: 3
"""The same with a static graph."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4), static_graph=True)
for _ in range(3 + rank):
    model(torch.ones(2, 4)).sum().backward()  # here
