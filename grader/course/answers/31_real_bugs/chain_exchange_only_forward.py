"""Nothing goes backward: each rank has to send backward to rank − 1 as well, and to receive what
rank + 1 sends."""
# exercise: chain_exchange
# diagnosis: wrong_type
import torch
import torch.distributed as dist


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    operations = []
    if rank > 0:
        operations.append(dist.P2POp(dist.irecv, before, rank - 1))
    if rank < n - 1:
        operations.append(dist.P2POp(dist.isend, forward, rank + 1))
    for request in dist.batch_isend_irecv(operations) if operations else []:
        request.wait()
    return before, None
