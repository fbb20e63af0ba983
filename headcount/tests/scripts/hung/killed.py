"""Rank 1 is killed while it loads its data, and the others wait for it."""

# culprits: 1
# verdict: never entered
# launch: variables
import os
import signal

import torch.distributed as dist

if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
dist.init_process_group("gloo")
