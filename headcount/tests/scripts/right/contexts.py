# ranks: 2
"""The script starts its ranks by a context of multiprocessing, and another process by one."""

import multiprocessing
import os
import pickle

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, size, start):
    dist.init_process_group("gloo", init_method=start, rank=rank, world_size=size)
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    assert total == 1
    dist.destroy_process_group()


def helper(box):
    box.put(os.getpid())


if __name__ == "__main__":
    forks = multiprocessing.get_context("fork")
    box = forks.Queue()
    beside = forks.Process(target=helper, args=(box,))
    beside.start()
    assert box.get(timeout=30) == beside.pid != os.getpid()
    beside.join()

    spawns = mp.get_context("spawn")
    assert pickle.loads(pickle.dumps(spawns.Process)) is spawns.Process
    processes = [
        spawns.Process(target=work, args=(rank, 2, "tcp://127.0.0.1:29501"), name=f"rank {rank}")
        for rank in range(2)
    ]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
        assert one.exitcode == 0
