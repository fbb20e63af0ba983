# ranks: 3
# diagnosis: deadlock
# status: 3
"""Rank 0 prepares the data and ends, while the others make the process group of all."""

import os

import torch
import torch.distributed as dist

if int(os.environ["RANK"]) > 0:
    dist.init_process_group()  # here
    dist.all_reduce(torch.ones(1))
