# exercise: tutorial_all_reduce
# diagnosis: none
# The other way round, and even ranks send while odd ones receive.
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    every = [send]
    for _ in range(n - 1):
        coming = torch.zeros_like(send)
        if rank % 2 == 0:
            dist.send(every[-1], (rank - 1) % n)
        dist.recv(coming, (rank + 1) % n)
        if rank % 2 == 1:
            dist.send(every[-1], (rank - 1) % n)
        every.append(coming)
    recv.copy_(sum(every))
