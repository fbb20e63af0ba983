"""The same, but both ranks begin the message first."""

# ranks: 2
# nccl: ends

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
        works.append(move(torch.ones(8), 1 - rank, group=background))

    thread = threading.Thread(target=message)
    thread.start()
    thread.join()
    works.append(dist.all_reduce(torch.ones(8), async_op=True))
    for work in works:
        work.wait()
