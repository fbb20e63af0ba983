# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""Each rank names itself as the source."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
dist.broadcast(torch.ones(1), src=rank)  # here
