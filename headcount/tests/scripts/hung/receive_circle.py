"""Each rank receives from the next one before it sends."""

# culprits: 0 1 2
# verdict: a circle
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
dist.all_reduce(torch.ones(1))
given = torch.ones(4)
dist.recv(given, (rank + 1) % size)  # culprit
dist.send(given, (rank - 1) % size)
