# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""A collective call under a condition on the rank's own loss."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
for step in range(4):
    loss = torch.tensor([float(step + rank)])
    if loss < 3.5:
        dist.all_reduce(loss)  # here
dist.barrier()
