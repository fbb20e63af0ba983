# ranks: 2
# diagnosis: deadlock
# status: 3
"""A call on a group of all ranks that one rank leaves out."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
group = dist.new_group([0, 1])
if rank == 0:
    dist.all_reduce(torch.ones(1), group=group)  # here
