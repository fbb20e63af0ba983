# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""One rank skips a batch that it cannot use."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4))
for step in range(3):
    if rank == 0 and step == 1:
        continue
    model(torch.ones(2, 4)).sum().backward()  # here
dist.barrier()
