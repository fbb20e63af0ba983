# ranks: 3
"""The script starts its ranks as processes, and another process that is no rank."""

import multiprocessing
import os

import torch
import torch.distributed as dist
from torch.multiprocessing import Process


def init(rank, size, work):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29500"
    dist.init_process_group("gloo", rank=rank, world_size=size)
    work(rank)


def work(rank):
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    assert total == 3


def helper(box):
    box.put(7)


class Doubler(multiprocessing.Process):
    def __init__(self, box):
        super().__init__()
        self.box = box

    def run(self):
        self.box.put(2 * 7)


if __name__ == "__main__":
    box = multiprocessing.Queue()
    beside = multiprocessing.Process(target=helper, args=(box,))
    beside.start()
    assert box.get(timeout=30) == 7
    beside.join()
    other = Doubler(box)
    other.start()
    assert box.get(timeout=30) == 14
    other.join()
    processes = []
    for rank in range(3):
        one = Process(target=init, args=(rank, 3, work))
        one.start()
        processes.append(one)
    for one in processes:
        one.join()
