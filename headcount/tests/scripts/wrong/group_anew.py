# ranks: 2
# diagnosis: deadlock
# status: 3
"""Rank 1 meets a batch that it cannot use, and makes the process group anew to go on."""

import torch
import torch.distributed as dist

dist.init_process_group()
batch = torch.ones(4)
if dist.get_rank() == 1:
    batch[2] = torch.nan
for _ in range(2):
    if batch.isnan().any():
        dist.destroy_process_group()
        dist.init_process_group()
        batch = torch.ones(4)
    dist.all_reduce(batch)  # here
