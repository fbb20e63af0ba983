# ranks: 2
# diagnosis: deadlock
# status: 3
"""One rank has nothing to do, and ends."""

import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
if rank == 0:
    dist.barrier()  # here
