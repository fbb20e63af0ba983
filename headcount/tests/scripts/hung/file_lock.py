"""Rank 0 keeps the lock of the cache while it waits for the others, and rank 1 wants it."""

# culprits: 0 1
# verdict: a circle
import fcntl
import os
import tempfile

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
path = os.path.join(tempfile.gettempdir(), f"cache-{os.environ['MASTER_PORT']}")
with open(path, "w") as cache:
    if dist.get_rank() == 0:
        fcntl.flock(cache, fcntl.LOCK_EX)
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == 1:
        fcntl.flock(cache, fcntl.LOCK_EX)  # culprit
    dist.all_reduce(torch.ones(1))
