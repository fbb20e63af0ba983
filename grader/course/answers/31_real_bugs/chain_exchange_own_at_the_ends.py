"""At the ends of the chain a rank returns a tensor although no neighbour is there to send one. The
place of a neighbour that is not there holds None."""
# exercise: chain_exchange
# diagnosis: wrong_type
# or: FILL = torch.zeros_like
import torch
import torch.distributed as dist

FILL = torch.clone


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before, after = FILL(forward), FILL(backward)
    operations = []
    if rank < n - 1:
        operations.append(dist.P2POp(dist.isend, forward, rank + 1))
    if rank > 0:
        operations.append(dist.P2POp(dist.irecv, before, rank - 1))
        operations.append(dist.P2POp(dist.isend, backward, rank - 1))
    if rank < n - 1:
        operations.append(dist.P2POp(dist.irecv, after, rank + 1))
    for request in dist.batch_isend_irecv(operations) if operations else []:
        request.wait()
    return before, after
