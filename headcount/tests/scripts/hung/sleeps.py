"""Rank 1 sleeps before its last call."""

# culprits: 1
# verdict: never entered
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(5):
    if step == 4 and dist.get_rank() == 1:
        time.sleep(600)  # culprit
    dist.all_reduce(torch.ones(4))
