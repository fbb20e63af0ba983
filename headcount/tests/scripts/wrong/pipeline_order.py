# ranks: 2
# diagnosis: deadlock
# status: 3
"""Two stages of a pipeline that each send their result before they receive."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
forward, backward = torch.ones(4), torch.ones(4)
for _ in range(2):
    if rank == 0:
        dist.send(forward, 1)
    else:
        dist.recv(forward, 0)
if rank == 0:
    dist.send(forward, 1)  # here
    dist.recv(backward, 1)
else:
    dist.send(backward, 0)
    dist.recv(forward, 0)
