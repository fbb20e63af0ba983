# ranks: 2
# diagnosis: deadlock
# status: 3
"""Both ranks receive first."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
into = torch.zeros(4)
dist.recv(into, 1 - rank)  # here
dist.send(torch.ones(4), 1 - rank)
