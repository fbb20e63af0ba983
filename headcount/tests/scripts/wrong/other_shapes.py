# ranks: 2
# diagnosis: exception
# status: 1
"""Models of different sizes."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 8 + rank))  # here
