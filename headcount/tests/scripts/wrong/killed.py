# ranks: 2
# diagnosis: crashed
# status: 1
"""The system kills one rank."""

import os
import signal

import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)  # here
dist.barrier()
