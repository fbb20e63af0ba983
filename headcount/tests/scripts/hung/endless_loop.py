"""Rank 2 waits in a loop for what never comes."""

# culprits: 2
# verdict: never entered
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, found = dist.get_rank(), 0
dist.all_reduce(torch.ones(4))
while rank == 2 and not found:  # culprit
    found = found * 2  # culprit
dist.all_reduce(torch.ones(4))
