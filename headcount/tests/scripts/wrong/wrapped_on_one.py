# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""The model is wrapped on one rank."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = torch.nn.Linear(4, 4)
if rank == 1:
    model = DDP(model)  # here
dist.barrier()
