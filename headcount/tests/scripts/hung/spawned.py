"""Ranks of mp.spawn: rank 1 waits for a program of its own."""

# culprits: 1
# verdict: never entered
# launch: spawn
import os
import subprocess
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, path):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=3)
    for _ in range(3):
        dist.all_reduce(torch.ones(1))
    if rank == 1:
        subprocess.run(["sleep", "600"])  # culprit
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    mp.spawn(work, (os.path.join(tempfile.mkdtemp(), "store"),), nprocs=3)
