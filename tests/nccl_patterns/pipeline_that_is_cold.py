"""A stage sends its last output and receives its first gradient in one batch, the first message in
that direction, while the next stage's host needs the output before it can send the gradient.
PyTorch's own schedules connect all stages before they begin."""

# ranks: 2
# nccl: deadlock
# says: and if NCCL connects the ranks of a batch all at once

import torch
import torch.distributed as dist
from torch.distributed import P2POp


def program():
    rank, x, gradient = dist.get_rank(), torch.ones(8), torch.empty(8)
    dist.all_reduce(torch.ones(1))
    if rank == 0:
        dist.batch_isend_irecv([P2POp(dist.isend, x, 1)])[0].wait()
        batch = [P2POp(dist.isend, x, 1), P2POp(dist.irecv, gradient, 1)]
        works = dist.batch_isend_irecv(batch)  # named
    else:
        for _ in range(2):
            (work,) = dist.batch_isend_irecv([P2POp(dist.irecv, x, 0)])  # named
            work.wait()
        works = dist.batch_isend_irecv([P2POp(dist.isend, x / x.sum().item(), 0)])
    for work in works:
        work.wait()
