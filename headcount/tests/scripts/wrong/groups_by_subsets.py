# ranks: 4
# diagnosis: order_mismatch
# status: 3
"""Each half makes the group that it needs."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
half = [0, 1] if rank < 2 else [2, 3]
group = dist.new_group(half)  # here
dist.all_reduce(torch.ones(1), group=group)
