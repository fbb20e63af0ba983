# ranks: 2
# diagnosis: deadlock
# status: 3
"""One rank has a batch more than the other, under FSDP2."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group()
rank = dist.get_rank()
model = torch.nn.Linear(4, 4)
fully_shard(model)
for _ in range(2 + rank):
    model(torch.ones(2, 4)).sum().backward()  # here
