"""A large all-to-all of batches, in the k-th of which each rank exchanges with the k-th rank after
it: the cutting that pytorch/pytorch#174942 found to wait in a circle."""

# ranks: 4
# nccl: deadlock
# says: this can hang: rank

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.all_to_all_single(torch.empty(size), torch.ones(size))
    works = []
    for step in range(1, size):
        peer = (rank + step) % size
        batch = [P2POp(dist.isend, torch.ones(8), peer), P2POp(dist.irecv, torch.empty(8), peer)]
        works += dist.batch_isend_irecv(batch)  # named
    for work in works:
        work.wait()
