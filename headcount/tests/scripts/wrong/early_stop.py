# ranks: 2
# diagnosis: deadlock
# status: 3
"""A rank stops when its own loss is small."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4))
for step in range(10):
    loss = model(torch.ones(2, 4) * (rank + 1)).sum()
    loss.backward()  # here
    if rank == 1 and step == 2:
        break
