# ranks: 2
# diagnosis: size_mismatch
# status: 3
"""The tensors of a dictionary, which each rank has in an order of its own."""

import torch
import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
tensors = {"a": torch.ones(1), "b": torch.ones(4)}
for name in sorted(tensors, reverse=rank == 1):
    dist.all_reduce(tensors[name])  # here
