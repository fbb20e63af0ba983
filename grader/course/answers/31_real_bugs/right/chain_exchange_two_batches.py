# exercise: chain_exchange
# diagnosis: none
# A batch for each direction.
import torch
import torch.distributed as dist


def pass_along(x, to, source):
    n = dist.get_world_size()
    came = torch.empty_like(x) if 0 <= source < n else None
    operations = []
    if 0 <= to < n:
        operations.append(dist.P2POp(dist.isend, x, to))
    if came is not None:
        operations.append(dist.P2POp(dist.irecv, came, source))
    for request in dist.batch_isend_irecv(operations) if operations else ():
        request.wait()
    return came


def chain_exchange(forward, backward):
    rank = dist.get_rank()
    return pass_along(forward, rank + 1, rank - 1), pass_along(backward, rank - 1, rank + 1)
