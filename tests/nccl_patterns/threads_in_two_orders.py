"""A thread exchanges messages on a group of its own while the main thread reduces on another, and
ranks begin them in different orders: pytorch/pytorch#175145."""

# ranks: 2
# nccl: deadlock
# says: if the kernels of two communicators do not run side by side

import threading

import torch
import torch.distributed as dist


def program():
    rank = dist.get_rank()
    background = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1))
    dist.all_reduce(torch.ones(1), group=background)
    works = []

    def message():
        move = dist.isend if rank == 0 else dist.irecv
        works.append(move(torch.ones(8), 1 - rank, group=background))  # named

    # the order of the threads is fixed here, which elsewhere differs from run to run
    thread = threading.Thread(target=message)
    if rank == 0:
        thread.start()
        thread.join()
    works.append(dist.all_reduce(torch.ones(8), async_op=True))  # named
    if rank == 1:
        thread.start()
        thread.join()
    for work in works:
        work.wait()
