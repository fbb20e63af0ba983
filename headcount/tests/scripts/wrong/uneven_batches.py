# ranks: 2
# diagnosis: deadlock
# status: 3
"""One rank has a batch more than the other."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4))
for _ in range(3 + rank):
    model(torch.ones(2, 4)).sum().backward()  # here
