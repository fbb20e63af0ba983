# exercise: ring_all_gather
# diagnosis: none
# Rows of one tensor, both directions of a round in one batch.
import torch
import torch.distributed as dist
from torch.distributed import P2POp, batch_isend_irecv, irecv, isend


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    rows = torch.empty((n, *x.shape), dtype=x.dtype)
    rows[rank] = x
    mine = rank
    for _ in range(n - 1):
        operations = [P2POp(isend, rows[mine], right), P2POp(irecv, rows[mine - 1], left)]
        for work in batch_isend_irecv(operations):
            work.wait()
        mine = (mine - 1) % n
    return list(rows.unbind(0))
