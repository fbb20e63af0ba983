"""Rank 2 does not come to the making of the group."""

# culprits: 2
# verdict: never entered
import os
import threading

import torch.distributed as dist

if os.environ["RANK"] == "2":
    threading.Event().wait()  # culprit
dist.init_process_group("gloo")
