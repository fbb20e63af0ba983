# ranks: 2
# diagnosis: deadlock
# status: 3
"""Rank 0 alone writes a distributed checkpoint."""

import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group()
rank = dist.get_rank()
if rank == 0:
    with tempfile.TemporaryDirectory() as folder:
        dcp.save({"x": torch.ones(2)}, checkpoint_id=folder)  # here
