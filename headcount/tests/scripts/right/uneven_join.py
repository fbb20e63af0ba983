# ranks: 2
"""Ranks with different numbers of batches, under Join."""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DDP(torch.nn.Linear(1, 1))
with Join([model]):
    for _ in range(5 + rank):
        model(torch.ones(2, 1)).sum().backward()
dist.destroy_process_group()
