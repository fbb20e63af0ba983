"""forward goes to rank − 1 here, and backward to rank + 1. It is the other way round: forward is
for the next stage."""
# exercise: chain_exchange
# diagnosis: wrong_shape
# alike: messages
import torch
import torch.distributed as dist


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(backward) if rank > 0 else None
    after = torch.empty_like(forward) if rank < n - 1 else None
    operations = []
    if rank < n - 1:
        operations.append(dist.P2POp(dist.isend, backward, rank + 1))
    if rank > 0:
        operations.append(dist.P2POp(dist.irecv, before, rank - 1))
        operations.append(dist.P2POp(dist.isend, forward, rank - 1))
    if rank < n - 1:
        operations.append(dist.P2POp(dist.irecv, after, rank + 1))
    for request in dist.batch_isend_irecv(operations) if operations else []:
        request.wait()
    return before, after
