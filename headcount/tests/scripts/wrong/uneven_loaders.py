# ranks: 2
# diagnosis: deadlock
# status: 3
"""Each rank loads a file of its own, and the files differ in length."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

dist.init_process_group()
rank = dist.get_rank()
model = DDP(torch.nn.Linear(4, 4))
mine = torch.ones(8 if rank == 0 else 12, 4)
for batch in DataLoader(mine, batch_size=4, num_workers=1):
    model(batch).sum().backward()  # here
