"""Rank 1 has a batch less, and waits for the writer of its report."""

# culprits: 1
# verdict: never entered
import queue

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for _ in range(3 if rank == 1 else 4):
    dist.all_reduce(torch.ones(2, 4))
report = queue.Queue()
report.get()  # culprit
