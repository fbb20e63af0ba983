# exercise: chain_exchange
# diagnosis: none
# No batch: odd ranks start each pair with the receive, so that no two ranks begin with a send to
# each other.
import torch
import torch.distributed as dist


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank + 1 < n else None
    starts = [
        lambda: dist.isend(forward, rank + 1) if rank + 1 < n else None,
        lambda: dist.irecv(before, rank - 1) if rank > 0 else None,
        lambda: dist.isend(backward, rank - 1) if rank > 0 else None,
        lambda: dist.irecv(after, rank + 1) if rank + 1 < n else None,
    ]
    order = (0, 1, 2, 3) if rank % 2 == 0 else (1, 0, 3, 2)
    for request in [starts[i]() for i in order]:
        if request is not None:
            request.wait()
    return before, after
