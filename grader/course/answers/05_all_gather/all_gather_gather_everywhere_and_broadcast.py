# exercise: all_gather
# diagnosis: too_many_messages
# hint: get something twice
import torch
import torch.distributed as dist


def exchange_all(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    requests = []
    for r in range(n):
        if r != rank:
            requests += [dist.isend(x, r), dist.irecv(parts[r], r)]
    for request in requests:
        request.wait()
    return parts


def all_gather(x):
    parts = torch.stack(exchange_all(x))
    # to be sure that all have the same
    if dist.get_rank() == 0:
        for r in range(1, dist.get_world_size()):
            dist.send(parts, r)
    else:
        dist.recv(parts, 0)
    return list(parts)
