# ranks: 2
"""The script starts its ranks itself, and shards the optimizer's state."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29501"
    dist.init_process_group("nccl", rank=rank, world_size=size)


def work(rank, size):
    setup(rank, size)
    model = DDP(torch.nn.Linear(4, 4).to(rank), device_ids=[rank])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    for _ in range(3):
        model(torch.ones(2, 4, device=rank)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.consolidate_state_dict()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2, join=True)
