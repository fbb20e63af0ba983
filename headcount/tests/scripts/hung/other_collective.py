"""Rank 0 broadcasts where the others reduce."""

# culprits: 0
# verdict: entered differently
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 0:
    dist.barrier()  # culprit
else:
    dist.all_reduce(torch.ones(1))
