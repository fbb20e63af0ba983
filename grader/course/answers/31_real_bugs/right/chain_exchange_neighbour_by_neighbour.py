# exercise: chain_exchange
# diagnosis: none
# One batch, in which the order of the messages means nothing: neighbour by neighbour.
# or: SEND_FIRST = True
import torch
import torch.distributed as dist

SEND_FIRST = False


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None
    operations = []
    if rank > 0:
        swap = [
            dist.P2POp(dist.irecv, before, rank - 1),
            dist.P2POp(dist.isend, backward, rank - 1),
        ]
        operations += swap[::-1] if SEND_FIRST else swap
    if rank < n - 1:
        operations.append(dist.P2POp(dist.isend, forward, rank + 1))
        operations.append(dist.P2POp(dist.irecv, after, rank + 1))
    for request in dist.batch_isend_irecv(operations) if operations else []:
        request.wait()
    return before, after
