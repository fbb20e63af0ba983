# ranks: 2
# diagnosis: deadlock
# status: 3
"""The ends of a message have different tags."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
if rank == 0:
    dist.send(torch.ones(4), 1, tag=1)  # here
else:
    dist.recv(torch.zeros(4), 0, tag=2)
