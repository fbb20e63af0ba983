# ranks: 2
"""The script's ranks are the workers of a pool, beside a pool that does something else."""

import multiprocessing

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, start):
    dist.init_process_group("gloo", init_method=start, rank=rank, world_size=2)
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    assert total == 1
    dist.destroy_process_group()


def square(number):
    return number * number


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(square, range(3)) == [0, 1, 4]
    with mp.get_context("spawn").Pool(2) as pool:
        pool.starmap(work, [(rank, "tcp://127.0.0.1:29503") for rank in range(2)])
