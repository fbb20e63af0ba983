"""Rank 1 is stopped by a signal after it has come to a call that all have made."""

# culprits: 1
# verdict: never entered
import os
import signal

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGSTOP)  # culprit
dist.all_reduce(torch.ones(1))
