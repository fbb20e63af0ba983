# exercise: chain_exchange
# diagnosis: none
import torch
import torch.distributed as dist


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    first, last = rank == 0, rank == n - 1
    before = None if first else torch.empty_like(forward)
    after = None if last else torch.empty_like(backward)
    operations = []
    if not last:
        operations.append(dist.P2POp(dist.isend, forward, rank + 1))
    if not first:
        operations.append(dist.P2POp(dist.irecv, before, rank - 1))
    if not first:
        operations.append(dist.P2POp(dist.isend, backward, rank - 1))
    if not last:
        operations.append(dist.P2POp(dist.irecv, after, rank + 1))
    if operations:
        for request in dist.batch_isend_irecv(operations):
            request.wait()
    return before, after
