"""A reduction and a chain of batched messages on one group, in different orders:
NVIDIA/nccl#1192."""

# ranks: 3
# nccl: deadlock
# says: too large for NCCL's buffers

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    dist.all_to_all_single(torch.empty(last + 1), torch.ones(last + 1))
    total, batch = torch.ones(1), []
    if rank > 0:
        batch.append(P2POp(dist.irecv, torch.empty(8), rank - 1))
    if rank < last:
        batch.append(P2POp(dist.isend, torch.ones(8), rank + 1))
    if rank == last:
        works = dist.batch_isend_irecv(batch)  # named
        works.append(dist.reduce(total, last, async_op=True))
    else:
        works = [dist.reduce(total, last, async_op=True)]  # named
        works += dist.batch_isend_irecv(batch)
    for work in works:
        work.wait()
