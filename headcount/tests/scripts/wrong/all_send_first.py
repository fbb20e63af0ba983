# ranks: 3
# diagnosis: deadlock
# status: 3
"""All ranks of a ring send, and then receive."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
size = dist.get_world_size()
for _ in range(2):
    dist.send(torch.ones(4), (rank + 1) % size)  # here
    dist.recv(torch.ones(4), (rank - 1) % size)
