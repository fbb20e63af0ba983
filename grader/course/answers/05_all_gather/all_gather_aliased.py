# exercise: all_gather
# diagnosis: aliased
# hint: must be a copy
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x if r == rank else torch.empty_like(x) for r in range(n)]
    requests = [dist.isend(x, r) for r in range(n) if r != rank]
    requests += [dist.irecv(parts[r], r) for r in range(n) if r != rank]
    for request in requests:
        request.wait()
    return parts
