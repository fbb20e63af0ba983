# ranks: 4
"""The default group is made and ended twice, with other subgroups each time; a store besides."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def total(value, group):
    found = torch.tensor([float(value)])
    dist.all_reduce(found, group=group)
    return float(found)


rank = int(os.environ["RANK"])
assert not dist.is_initialized()
dist.init_process_group(init_method="env://", timeout=timedelta(minutes=5))
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
assert total(rank, pairs[rank // 2]) == (1 if rank < 2 else 5)
assert total(rank, None) == 6
dist.destroy_process_group()
assert not dist.is_initialized()
dist.init_process_group("gloo", rank=rank, world_size=4)
odd = [dist.new_group([0, 2]), dist.new_group([1, 3])]
assert total(rank, odd[rank % 2]) == (2 if rank % 2 == 0 else 4)
mine, _ = dist.new_subgroups(2)
assert total(1, mine) == 2
port = int(os.environ["MASTER_PORT"])
store = dist.TCPStore("127.0.0.1", port, 4, is_master=rank == 0)
store.set(f"rank {rank}", "here")
store.wait([f"rank {peer}" for peer in range(4)])
dist.barrier()
dist.destroy_process_group()
