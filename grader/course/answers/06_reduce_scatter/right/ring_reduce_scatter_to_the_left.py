# exercise: ring_reduce_scatter
# diagnosis: none
# The other way round, with a batch in every step.
import torch
from torch import distributed as dist
from torch.distributed import P2POp, ReduceOp


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[(rank + 1) % n]
    for s in range(2, n + 1):
        came = torch.empty_like(partial)
        left, right = (rank - 1) % n, (rank + 1) % n
        batch = [P2POp(dist.isend, partial, left), P2POp(dist.irecv, came, right)]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        own = chunks[(rank + s) % n]
        if op == ReduceOp.MIN:
            partial = torch.minimum(came, own)
        elif op == ReduceOp.MAX:
            partial = torch.maximum(came, own)
        else:
            partial = came + own
    if op == ReduceOp.AVG:
        partial = partial / n
    return partial if n > 1 else partial.clone()
