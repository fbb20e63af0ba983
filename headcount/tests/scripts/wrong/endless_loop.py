# ranks: 2
# diagnosis: timeout
# status: 4
"""A rank computes for ever."""

import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
if rank == 1:
    sum(iter(int, 1))  # here
dist.barrier()
