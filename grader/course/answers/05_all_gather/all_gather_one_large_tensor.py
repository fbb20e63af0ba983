# exercise: all_gather
# diagnosis: wrong_type
# hint: one tensor for every rank
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = torch.empty((n, *x.shape), dtype=x.dtype)
    parts[rank] = x
    requests = []
    for r in range(n):
        if r != rank:
            requests += [dist.isend(x, r), dist.irecv(parts[r], r)]
    for request in requests:
        request.wait()
    return parts
