"""The same in one order on all ranks."""

# ranks: 3
# nccl: ends

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    dist.all_to_all_single(torch.empty(last + 1), torch.ones(last + 1))
    batch = []
    if rank > 0:
        batch.append(P2POp(dist.irecv, torch.empty(8), rank - 1))
    if rank < last:
        batch.append(P2POp(dist.isend, torch.ones(8), rank + 1))
    works = [dist.reduce(torch.ones(1), last, async_op=True)]
    works += dist.batch_isend_irecv(batch)
    for work in works:
        work.wait()
