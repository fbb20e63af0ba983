# ranks: 2
# diagnosis: exited
# status: 1
"""One rank has nothing to do, and exits with a status."""

import sys

import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
if rank == 1:
    sys.exit(7)  # here
dist.barrier()
