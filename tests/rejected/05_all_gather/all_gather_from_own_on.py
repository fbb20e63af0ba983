# exercise: all_gather
# diagnosis: wrong_value
# hint: begins with your own x
# The list goes round from the own x on.
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[0].copy_(x)
    requests = []
    for k in range(1, n):
        requests.append(dist.isend(x, (rank - k) % n))
        requests.append(dist.irecv(parts[k], (rank + k) % n))
    for request in requests:
        request.wait()
    return parts
