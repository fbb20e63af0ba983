# ranks: 2
# diagnosis: deadlock
# status: 3
"""The same with a communication hook in Python."""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4))
model.register_comm_hook(None, fp16_compress_hook)
for _ in range(3 + rank):
    model(torch.ones(2, 4)).sum().backward()  # here
