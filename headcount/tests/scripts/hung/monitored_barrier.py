"""Rank 1 does not come to a barrier that no recorder notes."""

# culprits: 1
# verdict: never entered
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 1:
    threading.Event().wait()  # culprit
dist.monitored_barrier()
