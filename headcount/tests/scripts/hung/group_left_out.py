"""Rank 2 leaves out a group that it is in."""

# culprits: 2
# verdict: never entered
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 2:
    threading.Event().wait()  # culprit
dist.new_group([0, 1, 2])
