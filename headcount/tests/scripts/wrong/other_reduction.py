# ranks: 2
# diagnosis: order_mismatch
# status: 3
"""One rank takes the maximum of what the other adds up."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
op = dist.ReduceOp.SUM if rank == 0 else dist.ReduceOp.MAX
dist.all_reduce(torch.ones(1), op=op)  # here
