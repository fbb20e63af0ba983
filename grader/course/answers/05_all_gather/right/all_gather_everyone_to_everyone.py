# exercise: all_gather
# diagnosis: none
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() if r == rank else torch.empty_like(x) for r in range(n)]
    requests = []
    for other in range(n):
        if other != rank:
            requests.append(dist.isend(x, other))
            requests.append(dist.irecv(parts[other], other))
    for request in requests:
        request.wait()
    return parts
