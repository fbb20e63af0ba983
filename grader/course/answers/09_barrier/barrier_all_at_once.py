# exercise: barrier
# diagnosis: not_synchronized
# hint: what its sender knew
# The right messages, but no round waits for the one before.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    requests, step = [], 1
    while step < n:
        requests.append(dist.isend(torch.zeros(1), (rank + step) % n))
        requests.append(dist.irecv(torch.zeros(1), (rank - step) % n))
        step *= 2
    for request in requests:
        request.wait()
