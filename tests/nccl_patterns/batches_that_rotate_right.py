"""The same in rounds in which ranks pair up: whom a rank exchanges with exchanges with it."""

# ranks: 4
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.all_to_all_single(torch.empty(size), torch.ones(size))
    works = []
    for step in range(1, size):
        peer = rank ^ step
        batch = [P2POp(dist.isend, torch.ones(8), peer), P2POp(dist.irecv, torch.empty(8), peer)]
        works += dist.batch_isend_irecv(batch)
    for work in works:
        work.wait()
